#include "jobs/apps_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/parallel.h"
#include "jobs/apps_file.h"
#include "jobs/output.h"

namespace limber {
namespace {

namespace fs = std::filesystem;

// Time to answer what waits, and to end: what `limber serve` needs at most.
constexpr int kEnd_s = 30;
constexpr int kHttp = 8000, kGrpc = 8001;

// In quotes, as units and YAML understand them. `text` has no line ends: check() has seen to that.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// systemd takes % and $ for its own.
std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '%' || c == '$') out += c;
  }
  return out;
}

double cores_of(const AppsExportOptions& job) { return job.cores > 0 ? job.cores : available_cores(); }

std::string unit(const AppsExportOptions& job, const std::string& file) {
  std::string text = fmt::format(
      "[Unit]\n"
      "Description=Limber: applications of {}\n"
      "After=network.target\n\n"
      "[Service]\n"
      "ExecStart=/usr/bin/limber serve --apps {} --host 0.0.0.0 --adapt-share {:.6g}%% \\\n"
      "    --record /var/lib/limber/serve.jsonl\n"
      "ExecReload=/bin/kill -HUP $MAINPID\n"
      "DynamicUser=yes\n"
      "StateDirectory=limber\n"
      "ProtectSystem=strict\n"
      "ProtectHome=read-only\n"
      "PrivateTmp=yes\n"
      "NoNewPrivileges=yes\n"
      "Restart=on-failure\n"
      "RestartSec=2\n"
      "TimeoutStopSec={}\n",
      literal(fs::path(file).filename().string()), in_quotes(literal(file)), 100 * job.adapt_share, kEnd_s);
  text += fmt::format("CPUQuota={:.0f}%\n", 100 * cores_of(job));
  if (job.memory_bytes > 0) text += fmt::format("MemoryMax={}\n", job.memory_bytes);
  return text + "\n[Install]\nWantedBy=multi-user.target\n";
}

std::string resources(const AppsExportOptions& job) {
  std::string limits = fmt::format("cpu: \"{}m\"", std::llround(1000 * cores_of(job)));
  if (job.memory_bytes > 0) limits += fmt::format(", memory: \"{}\"", job.memory_bytes);
  return limits;
}

// What it asks for is what it may have: a neighbour that takes its cores would be load that it gives way to.
std::string deployment(const AppsExportOptions& job, const std::string& file) {
  const std::string path = "/apps/" + fs::path(file).filename().string();
  return fmt::format(R"(apiVersion: apps/v1
kind: Deployment
metadata:
  name: limber
  labels: {{app: limber}}
spec:
  replicas: 1
  strategy: {{type: Recreate}}
  selector:
    matchLabels: {{app: limber}}
  template:
    metadata:
      labels: {{app: limber}}
    spec:
      terminationGracePeriodSeconds: {}
      containers:
        - name: limber
          image: {}
          command: ["limber", "serve", "--apps", {}, "--host", "0.0.0.0", "--adapt-share", "{:.6g}%"]
          ports:
            - {{name: http, containerPort: {}}}
            - {{name: grpc, containerPort: {}}}
          livenessProbe:
            httpGet: {{path: /v2/health/live, port: http}}
          readinessProbe:
            httpGet: {{path: /v2/health/ready, port: http}}
          resources:
            requests: {{{}}}
            limits: {{{}}}
          securityContext:
            allowPrivilegeEscalation: false
            capabilities: {{drop: ["ALL"]}}
            readOnlyRootFilesystem: true
          volumeMounts:
            - {{name: apps, mountPath: /apps, readOnly: true}}
            - {{name: tmp, mountPath: /tmp}}
      volumes:
        - name: apps
          persistentVolumeClaim: {{claimName: {}, readOnly: true}}
        - name: tmp
          emptyDir: {{}}
---
apiVersion: v1
kind: Service
metadata:
  name: limber
spec:
  selector: {{app: limber}}
  ports:
    - {{name: http, port: {}, targetPort: http}}
    - {{name: grpc, port: {}, targetPort: grpc}}
)",
                     kEnd_s, in_quotes(job.image), in_quotes(path), 100 * job.adapt_share, kHttp, kGrpc,
                     resources(job), resources(job), in_quotes(job.claim), kHttp, kGrpc);
}

// Below the folder of the file, where a volume has it.
Status check_inside(const ServedApps& apps, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  for (const ServedApp& app : apps.apps) {
    const fs::path model = app.model, data = app.adapt.data;
    for (const fs::path& path : {model, data}) {
      if (path.is_relative()) continue;  // nothing, or made up: the others were made absolute with the file
      const fs::path inside = path.lexically_normal().lexically_relative(folder);
      if (inside.empty() || *inside.begin() == "..")
        return invalid("app '{}' needs {}, which is not below {}; a volume has what lies beside the file",
                       app.name, path.string(), folder.string());
    }
  }
  return {};
}

}  // namespace

Status check(const AppsExportOptions& job) {
  if (job.apps.empty()) return invalid("export what? Expected the file that names applications");
  if (!(job.cores >= 0) || !std::isfinite(job.cores))
    return invalid("cores is {}; expected 0 or more", job.cores);
  if (!(job.adapt_share > 0 && job.adapt_share <= 1))
    return invalid("the share for learning is {}; expected more than 0 and at most 1", job.adapt_share);
  const AppsExportOptions usual;
  if (job.to == Orchestrator::kSystemd && (job.image != usual.image || job.claim != usual.claim))
    return invalid("an image and a claim are for Kubernetes, and a unit of systemd was asked for");
  for (const std::string& text : {job.apps, job.image, job.claim}) {
    const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
    if (text.empty() || std::any_of(text.begin(), text.end(), control))
      return invalid("'{}' cannot be written; expected a name on one line", text);
  }
  return {};
}

Result<std::string> run_apps_export(const AppsExportOptions& job, const JobControl&) {
  LIMBER_TRY(check(job));
  std::error_code failed;
  const std::string file = fs::absolute(job.apps, failed).lexically_normal().string();
  LIMBER_ASSIGN(const ServedApps apps, read_apps(file));
  if (job.to == Orchestrator::kKubernetes) LIMBER_TRY(check_inside(apps, file));
  if (!job.output.empty()) LIMBER_TRY(check_output_file(job.output, job.apps));
  const std::string text = job.to == Orchestrator::kSystemd ? unit(job, file) : deployment(job, file);
  if (!job.output.empty()) LIMBER_TRY(os_files().write(job.output, text));
  return text;
}

}  // namespace limber

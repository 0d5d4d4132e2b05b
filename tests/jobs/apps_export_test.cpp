#include "jobs/apps_export.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/data/files.h"

namespace limber {
namespace {

constexpr std::string_view kTwo = R"([[app]]
name = "gate"
model = "builtin:resnet8"
adapt = "bn"
adapt_data = "synthetic:count=100"
[[app]]
name = "yard"
model = "yard.onnx"
)";

class AppsExport : public testing::Test {
 protected:
  AppsExport() {
    job_.apps = write("my apps 50%.toml", kTwo);
    write("yard.onnx", "");
  }
  std::string write(const std::string& name, std::string_view text) const {
    EXPECT_TRUE(os_files().write(folder_ / name, text).ok());
    return folder_ / name;
  }
  std::string exported() const {
    const auto text = run_apps_export(job_);
    EXPECT_TRUE(text.ok()) << text.status().message();
    return text.ok() ? *text : "";
  }
  const Folder folder_;
  AppsExportOptions job_;
};

void expect_parts(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(AppsExport, AUnitNamesTheFileAndWhatItMayUse) {
  job_.cores = 1.5;
  job_.memory_bytes = 1 << 30;
  job_.adapt_share = 0.5;
  const std::string text = exported();
  expect_parts(text, {"Description=Limber: applications of my apps 50%%.toml\n",
                      "serve --apps \"" + (folder_ / "my apps 50%%.toml") + "\" ", "--adapt-share 50%% ",
                      "CPUQuota=150%\n", "MemoryMax=1073741824\n", "ExecReload=/bin/kill -HUP $MAINPID\n",
                      "[Install]"});
  job_.memory_bytes = 0;
  EXPECT_EQ(exported().find("MemoryMax"), std::string::npos) << "no limit";
}

TEST_F(AppsExport, ADeploymentHasTheFileInAVolume) {
  job_.to = Orchestrator::kKubernetes;
  job_.cores = 1.5;
  job_.memory_bytes = 1 << 30;
  job_.image = "registry.local/limber:1";
  job_.claim = "site \"7\"";
  expect_parts(exported(),
               {"kind: Deployment", "kind: Service", "image: \"registry.local/limber:1\"",
                "\"--apps\", \"/apps/my apps 50%.toml\"", "\"--adapt-share\", \"25%\"",
                "claimName: \"site \\\"7\\\"\"", "requests: {cpu: \"1500m\", memory: \"1073741824\"}",
                "limits: {cpu: \"1500m\"", "/v2/health/ready"});
}

TEST_F(AppsExport, WhatAVolumeDoesNotHaveIsRefused) {
  const std::string far = write("models/far.onnx", ""), apps = write("site/apps.toml", R"([[app]]
name = "far"
model = "../models/far.onnx"
)");
  job_.apps = apps;
  EXPECT_TRUE(run_apps_export(job_).ok()) << "systemd has all files";
  job_.to = Orchestrator::kKubernetes;
  expect_failure(run_apps_export(job_), Code::kInvalidArgument, {"app 'far'", "far.onnx", "beside the file"});
}

TEST_F(AppsExport, IsWrittenOrRefused) {
  job_.output = folder_ / "limber.service";
  const std::string text = exported();
  EXPECT_EQ(*os_files().read(job_.output, 1 << 20), text);
  job_.output = job_.apps;
  EXPECT_FALSE(run_apps_export(job_).ok()) << "that would be the end of the file";
  job_.output.clear();
  job_.image = "other";
  expect_failure(run_apps_export(job_), Code::kInvalidArgument, {"Kubernetes"});
  job_.to = Orchestrator::kKubernetes;
  job_.image = "a\nb";
  expect_failure(run_apps_export(job_), Code::kInvalidArgument, {"one line"});
  job_.image = "limber";
  job_.apps = write("wrong.toml", "app = 3\n");
  expect_failure(run_apps_export(job_), Code::kInvalidArgument, {"wrong.toml:1", "[[app]]"});
  job_.apps = folder_ / "nowhere.toml";
  EXPECT_EQ(run_apps_export(job_).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace limber

#include <string_view>

#include "serve/http/http_server.h"

namespace limber {

Status check(const HttpOptions& options) {
  if (options.io_threads < 1 || options.io_threads > 64)
    return invalid("io_threads is {}; expected 1 to 64", options.io_threads);
  if (options.metrics_port < -1 || options.metrics_port > 65535)
    return invalid("metrics_port is {}; expected a port, or -1 for none", options.metrics_port);
  if (options.metrics_port > 0 && options.metrics_port == options.port)
    return invalid("metrics_port is {}, as port; expected another", options.metrics_port);
  if (options.max_connections < 1) return invalid("max_connections is 0; expected 1 or more");
  if (options.max_head_bytes < 1024 || options.max_head_bytes > (1 << 20))
    return invalid("max_head_bytes is {}; expected 1 KiB to 1 MiB", options.max_head_bytes);
  if (options.max_bytes_in_flight < options.max_body_bytes)
    return invalid("max_bytes_in_flight is {}; expected at least max_body_bytes, {}",
                   options.max_bytes_in_flight, options.max_body_bytes);
  for (const auto& [name, value] : {std::pair<std::string_view, double>{"idle_s", options.idle_s},
                                    {"head_s", options.head_s},
                                    {"body_s", options.body_s},
                                    {"slow_bytes_per_s", options.slow_bytes_per_s}}) {
    if (!(value > 0)) return invalid("{} is {}; expected more than 0", name, value);
  }
  if (options.tls_certificate.empty() != options.tls_key.empty())
    return invalid("tls_certificate and tls_key: expected both or none");
  if (!options.tls_client_ca.empty() && options.tls_certificate.empty())
    return invalid(
        "tls_client_ca is given without tls_certificate and tls_key; clients are known by TLS only");
  return {};
}

}  // namespace limber

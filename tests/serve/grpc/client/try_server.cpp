// try_server [TOKEN]: serves the fake service on a free port, prints the port, and ends with its standard
// input.
#include <fmt/core.h>

#include <cstdio>

#include "../fake_service.h"
#include "serve/grpc/grpc_server.h"

int main(int argc, char** argv) {
  limber::testing::FakeService service;
  service.refusal = {limber::Refusal::kOverloaded, "queue full", 0.25};
  limber::GrpcOptions options;
  options.port = 0;
  if (argc > 1) options.token = argv[1];
  const auto server = limber::GrpcServer::start(options, service);
  if (!server.ok()) {
    fmt::print(stderr, "{}\n", server.status().message());
    return 1;
  }
  fmt::print("{}\n", (*server)->port());
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  (*server)->stop(5);
  return 0;
}

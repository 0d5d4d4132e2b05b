#pragma once

#include <memory>

#include "serve/grpc/grpc_server.h"
#include "serve/grpc/load_thread.h"

namespace grpc {
class CallbackGenericService;
}

namespace limber {

// What gRPC asks for every call. Takes calls as bytes, so that nothing is read of one that may not be made
// and nothing is parsed that is made to cost memory. The arguments must outlive it.
std::unique_ptr<grpc::CallbackGenericService> make_calls(const GrpcOptions& options,
                                                         InferenceService& service, LoadThread& loader);

}  // namespace limber

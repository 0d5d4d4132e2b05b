#include "serve/grpc/calls.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/sha256.h"
#include "grpc_service.pb.h"
#include "serve/grpc/messages.h"
#include "serve/grpc/methods.h"

namespace limber {
namespace {

constexpr std::string_view kInfer = "/inference.GRPCInferenceService/ModelInfer";
constexpr std::string_view kStream = "/inference.GRPCInferenceService/ModelStreamInfer";
constexpr std::string_view kLoad = "/inference.GRPCInferenceService/RepositoryModelLoad";
constexpr std::string_view kUnload = "/inference.GRPCInferenceService/RepositoryModelUnload";

std::string digest(std::string_view text) { return Sha256().add(text).hex(); }

// Takes as long for any two texts of one length, so that the time tells nothing of where they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

// What every call needs.
struct CallContext {
  InferenceService& service;
  LoadThread& loader;
  std::string token_digest;  // empty: none is needed
  bool open_health;          // nor for health
};

// What waits for an answer. Whoever takes the call out of `waiting` has it alone and must finish it: the
// service with its answer, or gRPC because the client is gone or the server stops. What comes second finds
// nothing.
template <typename Call>
struct Pending {
  std::atomic<Call*> waiting = nullptr;
};

// One call, unary or a stream, from its headers to its status. Deletes itself.
class GrpcCall final : public grpc::ServerGenericBidiReactor {
 public:
  GrpcCall(CallContext& shared, grpc::GenericCallbackServerContext& context)
      : shared_(shared),
        context_(context),
        path_(context.method()),
        quick_(find_quick_method(path_)),
        streams_(path_ == kStream),
        pending_(std::make_shared<Pending<GrpcCall>>()) {
    if (!quick_ && !streams_ && path_ != kInfer && path_ != kLoad && path_ != kUnload) {
      Finish(
          grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                       fmt::format("{:.100} is not offered; proto/grpc_service.proto lists what is", path_)));
    } else if (!is_allowed()) {
      Finish(grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                          "no valid token; send metadata 'authorization: Bearer TOKEN'"));
    } else {
      StartRead(&in_);
    }
  }

  void OnReadDone(bool ok) override {
    const double received = now_seconds();
    if (!ok) {
      // The client's last message of a stream is behind us; a unary call has one.
      const auto code = streams_ ? grpc::StatusCode::OK : grpc::StatusCode::INVALID_ARGUMENT;
      return Finish(grpc::Status(code, streams_ ? "" : "a call without a message; one is expected"));
    }
    if (quick_) return answer(quick_(shared_.service, in_, out_));
    if (path_ == kLoad)
      return change_repository<inference::RepositoryModelLoadRequest>(&InferenceService::load);
    if (path_ == kUnload)
      return change_repository<inference::RepositoryModelUnloadRequest>(&InferenceService::unload);
    infer(received);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&in_);
  }

  void OnCancel() override {
    cancelled_ = true;
    if (pending_->waiting.exchange(nullptr) != nullptr) Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override { delete this; }

 private:
  bool is_allowed() const {
    if (shared_.token_digest.empty() || (shared_.open_health && is_health_method(path_))) return true;
    constexpr std::string_view kScheme = "Bearer ";
    const auto [begin, end] = context_.client_metadata().equal_range("authorization");
    return std::any_of(begin, end, [&](const auto& entry) {
      const std::string_view value(entry.second.data(), entry.second.size());
      return value.starts_with(kScheme) &&
             equal_in_constant_time(digest(value.substr(kScheme.size())), shared_.token_digest);
    });
  }

  double deadline() const {
    const auto at = context_.deadline();
    if (at == std::chrono::system_clock::time_point::max()) return std::numeric_limits<double>::infinity();
    return now_seconds() + std::chrono::duration<double>(at - std::chrono::system_clock::now()).count();
  }

  // False when the client is gone already: the call is finished then. Afterwards it belongs to whoever takes
  // it.
  bool wait() {
    pending_->waiting = this;
    if (!cancelled_) return true;
    if (pending_->waiting.exchange(nullptr) != nullptr) Finish(grpc::Status::CANCELLED);
    return false;
  }

  void infer(double received) {
    inference::ModelInferRequest message;
    InferRequest request;
    const ServeStatus status = read(message, received, request);
    if (!status.ok()) {
      InferResponse refused;
      refused.status = status;
      refused.id = message.id();
      return answer_infer(refused);
    }
    request.deadline = std::min(request.deadline, deadline());
    const auto pending = pending_;
    InferenceService& service = shared_.service;
    if (!wait()) return;
    service.infer(std::move(request), [pending](const InferResponse& response) {
      GrpcCall* call = pending->waiting.exchange(nullptr);
      if (call != nullptr) call->answer_infer(response);
    });
  }

  ServeStatus read(inference::ModelInferRequest& message, double received, InferRequest& to) {
    if (ServeStatus status = parse_message(in_, message); !status.ok()) return status;
    std::string image_input;
    if (has_bytes_input(message)) {
      ModelMetadata metadata;
      ServeStatus status = shared_.service.metadata(message.model_name(), message.model_version(), metadata);
      if (!status.ok()) return status;
      if (metadata.takes_images && !metadata.inputs.empty()) image_input = metadata.inputs[0].name;
    }
    auto request = read_infer_request(message, image_input, received);
    if (!request.ok()) return bad_request(request.status());
    to = *std::move(request);
    return {};
  }

  // From any thread that has the call alone.
  void answer_infer(const InferResponse& response) {
    if (streams_) return answer_stream(response);
    if (!response.status.ok()) return answer(response.status);
    inference::ModelInferResponse message;
    write_infer_response(response, message);
    answer(serialize_message(message, out_));
  }

  // What fails is told within the stream, which goes on.
  void answer_stream(const InferResponse& response) {
    inference::ModelStreamInferResponse message;
    if (response.status.ok()) {
      write_infer_response(response, *message.mutable_infer_response());
    } else {
      message.set_error_message(
          fmt::format("{}: {}", refusal_name(response.status.refusal), response.status.message));
      message.mutable_infer_response()->set_id(response.id);
    }
    const ServeStatus status = serialize_message(message, out_);
    if (!status.ok()) return answer(status);
    StartWrite(&out_);
  }

  template <typename Request>
  void change_repository(ServeStatus (InferenceService::*change)(const std::string&)) {
    Request message;
    if (const ServeStatus status = parse_message(in_, message); !status.ok()) return answer(status);
    if (message.model_name().empty()) {
      return answer({Refusal::kBadRequest, "model_name is empty; the name of a model"});
    }
    const auto pending = pending_;
    InferenceService& service = shared_.service;
    LoadThread& loader = shared_.loader;
    if (!wait()) return;
    const bool posted = loader.post([pending, &service, change, model = message.model_name()] {
      if (pending->waiting == nullptr) return;  // nobody wants it any more
      const ServeStatus status = (service.*change)(model);
      GrpcCall* call = pending->waiting.exchange(nullptr);
      if (call != nullptr) call->answer(status);
    });
    GrpcCall* call = posted ? nullptr : pending->waiting.exchange(nullptr);
    if (call == nullptr) return;
    call->answer({Refusal::kOverloaded,
                  fmt::format("{} changes of models wait already; ask again later", LoadThread::kMaxWaiting),
                  1});
  }

  // Ends the call, with what is in `out_` if all is well. Messages of the repository have no fields.
  void answer(const ServeStatus& status) {
    if (!status.ok()) {
      if (status.retry_after_s > 0) {
        context_.AddTrailingMetadata("retry-after", fmt::format("{:g}", status.retry_after_s));
        // The same for clients of gRPC that try again by themselves.
        const double milliseconds = std::min(std::ceil(status.retry_after_s * 1e3), 1e9);
        context_.AddTrailingMetadata("grpc-retry-pushback-ms", fmt::format("{:.0f}", milliseconds));
      }
      return Finish(grpc_status(status));
    }
    if (!out_.Valid()) out_ = grpc::ByteBuffer(nullptr, 0);
    StartWriteAndFinish(&out_, grpc::WriteOptions(), grpc::Status::OK);
  }

  CallContext& shared_;
  grpc::GenericCallbackServerContext& context_;
  const std::string path_;
  const QuickMethod quick_;
  const bool streams_;
  const std::shared_ptr<Pending<GrpcCall>> pending_;
  std::atomic<bool> cancelled_ = false;
  grpc::ByteBuffer in_, out_;
};

class GrpcCalls final : public grpc::CallbackGenericService {
 public:
  explicit GrpcCalls(CallContext context) : context_(std::move(context)) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new GrpcCall(context_, *context);
  }

 private:
  CallContext context_;
};

}  // namespace

std::unique_ptr<grpc::CallbackGenericService> make_calls(const GrpcOptions& options,
                                                         InferenceService& service, LoadThread& loader) {
  const std::string token = options.token.empty() ? "" : digest(options.token);
  return std::make_unique<GrpcCalls>(CallContext{service, loader, token, options.open_health});
}

}  // namespace limber

// The seam between transports and models: what a server can be asked, whatever the protocol.
//
//   HTTP ──┐                         ┌── queue ── workers ── sessions
//   gRPC ──┴── InferenceService ─────┤
//                                    └── metadata, metrics, status
//
// Transports turn bytes into these types and back, and know nothing of graphs; whoever implements the service
// knows nothing of sockets. Names follow the Open Inference Protocol, version 2.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace limber {

// Why a request got no answer. Each is one status of HTTP and one of gRPC.
enum class Refusal : uint8_t {
  kNone,
  kBadRequest,   // 400, INVALID_ARGUMENT: what was asked makes no sense to this model
  kNotFound,     // 404, NOT_FOUND: no such model, version or input
  kTooLarge,     // 413, RESOURCE_EXHAUSTED: larger than this server takes
  kOverloaded,   // 429, RESOURCE_EXHAUSTED: the queue is full; come back after retry_after_s
  kUnavailable,  // 503, UNAVAILABLE: not ready yet, or shutting down
  kTooLate,      // 504, DEADLINE_EXCEEDED: its time ran out before it was its turn, so it was not done
  kInternal,     // 500, INTERNAL: our fault
};

const char* refusal_name(Refusal refusal);  // "overloaded": for metrics and logs
int http_status(Refusal refusal);

struct ServeStatus {
  Refusal refusal = Refusal::kNone;
  std::string message;       // names the thing, the value, what was expected
  double retry_after_s = 0;  // of kOverloaded and kUnavailable: when it makes sense to ask again

  bool ok() const { return refusal == Refusal::kNone; }
};

struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // -1: open
};

struct ModelMetadata {
  std::string name;
  std::vector<std::string> versions;  // that may be asked for, the newest last
  std::string platform = "limber_elastic";
  std::vector<TensorSpec> inputs, outputs;
  std::vector<std::string> classes;  // empty: unknown
  bool takes_images = false;         // input 0 may be given as encoded images, see InferInput
};

struct ServerMetadata {
  std::string name = "limber", version;
  std::vector<std::string> extensions;
};

// One input of a request: numbers as the model takes them, or images as they lie in files (JPEG, PNG, WebP
// ...; protocol: datatype BYTES), one for each row, which become the model's input by its own preprocessing.
struct InferInput {
  std::string name;
  Tensor tensor;                    // not valid() when `images` are meant
  std::vector<std::string> images;  // encoded; not looked at by transports
};

struct InferRequest {
  std::string model, version, id;  // version empty: the newest
  std::vector<InferInput> inputs;
  std::vector<std::string> outputs;  // names of those that are wanted; empty: all
  // When the answer is worth nothing any more, as now_seconds(); what cannot be done until then is refused
  // with kTooLate as early as that is known.
  double deadline = std::numeric_limits<double>::infinity();
  double received = 0;  // when its last byte came, as now_seconds(); latency counts from here
};

struct InferOutput {
  std::string name;
  Tensor tensor;
};

struct InferResponse {
  ServeStatus status;  // not ok: only this, `model`, `version` and `id` are meant
  std::string model, version, id;
  std::vector<InferOutput> outputs;
  // What computed it, for whoever wants to know: sent as response parameters.
  std::string variant;  // as print() shows it, "original" for the model as it is
  double queue_s = 0, compute_s = 0;
};
using InferDone = std::function<void(InferResponse)>;

struct RepositoryEntry {
  std::string name, version;
  std::string state;   // "READY", "LOADING", "UNLOADING", "UNAVAILABLE"
  std::string reason;  // why it is not ready
};

// All calls may come from any number of threads, and none but load() and unload() waits for work.
class InferenceService {
 public:
  virtual ~InferenceService() = default;

  virtual ServerMetadata server() const = 0;
  // The process answers; it can do useful work: every model that was asked for is warm.
  virtual bool live() const = 0;
  virtual bool ready() const = 0;
  // With version "" the newest.
  virtual ServeStatus model_ready(std::string_view model, std::string_view version) const = 0;
  virtual ServeStatus metadata(std::string_view model, std::string_view version, ModelMetadata& to) const = 0;

  // Calls `done` exactly once, from this thread or another, also when it refuses or the server stops. `done`
  // must not block: transports post what follows to a thread of their own.
  virtual void infer(InferRequest request, InferDone done) = 0;

  virtual std::vector<RepositoryEntry> index(bool ready_only) const = 0;
  // Take as long as loading takes (seconds): not for threads that serve sockets. When a load fails, what was
  // loaded under this name stays as it was.
  virtual ServeStatus load(const std::string& model) = 0;
  virtual ServeStatus unload(const std::string& model) = 0;
  // Makes a warm variant active, for tests of switching: POST /v2/limber/variant, where a server allows it.
  virtual ServeStatus force(const std::string& model, const std::string& variant) {
    return {Refusal::kNotFound, "model '" + model + "' has no variant '" + variant + "'"};
  }

  // GET /metrics: Prometheus' text format, version 0.0.4.
  virtual std::string metrics() const = 0;
  // GET /v2/limber/status: what the live page shows, as JSON (docs/serving.md).
  virtual std::string status_json() const = 0;
};

}  // namespace limber

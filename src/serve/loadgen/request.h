// What goes over the wire: requests of the Open Inference Protocol 2 over HTTP, good ones and broken ones.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "serve/loadgen/target.h"
#include "tensor/tensor.h"

namespace limber {

// One request's inputs, in the order of the model's.
struct LoadRow {
  std::vector<Tensor> inputs;
  int64_t label = -1;  // the right class; negative: nobody knows
};

// Rows for a model whose open dimensions are 1: floats from a normal distribution, integers 0 and 1.
Result<std::vector<LoadRow>> random_rows(const ModelMetadata& model, int count, uint64_t seed);

enum class Encoding : uint8_t {
  kBinary,  // numbers as bytes behind the JSON: the binary tensor extension
  kJson,    // numbers as text
};

// Everything that is the same in all requests for one row is made once.
class RequestWriter {
 public:
  // REQUIRES: every row has as many inputs as the model; there is a row
  RequestWriter(const LoadTarget& target, const ModelMetadata& model, std::vector<LoadRow> rows,
                Encoding encoding);

  size_t rows() const { return rows_.size(); }
  int64_t label(size_t row) const { return rows_[row].label; }

  // `head` (HTTP's and the JSON before the numbers) is written anew; `tail` is what is sent after it, which
  // belongs to the writer. `timeout_us` 0: none is asked for.
  void write(size_t row, uint64_t id, int64_t timeout_us, std::string& head, std::string_view& tail) const;

  // A request that no server may answer with success, of a kind drawn by `random`; the head is all of it.
  // Returns the name of the kind.
  std::string_view write_malformed(Random& random, std::string& head) const;
  // The names of all kinds.
  static std::vector<std::string_view> malformed_kinds();

 private:
  struct Rendered {
    std::string inputs;  // the JSON of all inputs, without brackets
    std::string bytes;   // numbers behind the JSON
    int64_t label;
  };
  std::string http_head(std::string_view path, size_t body, size_t json) const;

  LoadTarget target_;
  ModelMetadata model_;
  std::string path_, outputs_;
  std::vector<Rendered> rows_;
};

// The protocol's name of a type, "FP32"; empty: it has none.
std::string_view protocol_name(DType dtype);
// The inverse; kUnsupported names the text.
Result<DType> parse_protocol_name(std::string_view name);

struct ParsedAnswer {
  std::string id, variant;  // empty: the answer has none
  int64_t predicted = -1;   // the largest of the first output's first row; -1: no numbers there
  bool readable = false;
};
// The body of an answer. `json_bytes`: what Inference-Header-Content-Length says; 0: all of it is JSON.
ParsedAnswer parse_answer(std::string_view body, size_t json_bytes);

}  // namespace limber

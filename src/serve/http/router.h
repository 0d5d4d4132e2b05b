// From paths to calls of the service, and from its results to answers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/background.h"
#include "serve/http/message.h"
#include "serve/service.h"

namespace limber {

// Makes an answer out of a result; called on the thread of the connection.
using MakeAnswer = std::function<HttpAnswer()>;
using AnswerLater = std::function<void(MakeAnswer)>;

// The segments of a path, percent-decoded, without the query; nothing when it is malformed. "/" has none, and
// a slash at the end adds none.
std::optional<std::vector<std::string>> split_path(std::string_view target);

// Calls from any thread.
class Router {
 public:
  // `debug`: variants may be made active, see HttpOptions.
  explicit Router(InferenceService& service, bool debug = false);

  // Answers at once; or gives nothing and calls `later` exactly once, from any thread, also before it
  // returns. Models that are being loaded when the router is destroyed are waited for.
  std::optional<HttpAnswer> handle(const HttpCall& call, AnswerLater later);

 private:
  struct Match;
  using Segments = std::vector<std::string>;
  Match match(const Segments& path, bool metrics_only) const;
  std::optional<HttpAnswer> model_call(const HttpCall& call, const Segments& path, AnswerLater& later);
  HttpAnswer model_document(const std::string& model, const std::string& version) const;
  HttpAnswer model_ready(const std::string& model, const std::string& version) const;
  std::optional<HttpAnswer> infer(const HttpCall& call, std::string model, std::string version,
                                  AnswerLater& later);
  HttpAnswer index(const HttpCall& call) const;
  HttpAnswer force(const HttpCall& call);
  std::optional<HttpAnswer> load(const HttpCall& call, const std::string& model, bool load,
                                 AnswerLater& later);

  InferenceService& service_;
  const bool debug_;
  Background loads_;
};

// {"error": message}, with Retry-After where it makes sense to come back.
HttpAnswer refusal_answer(const ServeStatus& status);

}  // namespace limber

#include "serve/service.h"

namespace limber {

const char* refusal_name(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return "ok";
    case Refusal::kBadRequest:
      return "bad_request";
    case Refusal::kNotFound:
      return "not_found";
    case Refusal::kTooLarge:
      return "too_large";
    case Refusal::kOverloaded:
      return "overloaded";
    case Refusal::kUnavailable:
      return "unavailable";
    case Refusal::kTooLate:
      return "too_late";
    case Refusal::kInternal:
      return "internal";
  }
  return "internal";
}

int http_status(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return 200;
    case Refusal::kBadRequest:
      return 400;
    case Refusal::kNotFound:
      return 404;
    case Refusal::kTooLarge:
      return 413;
    case Refusal::kOverloaded:
      return 429;
    case Refusal::kUnavailable:
      return 503;
    case Refusal::kTooLate:
      return 504;
    case Refusal::kInternal:
      return 500;
  }
  return 500;
}

}  // namespace limber

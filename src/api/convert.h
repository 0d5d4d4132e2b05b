// From the engine's types to public ones.
#pragma once

#include <memory>

#include "api/bridge.h"
#include "base/status.h"
#include "ir/model.h"

namespace limber::bridge {

inline Error to_error(const Status& status) {
  static_assert(static_cast<int>(ErrorCode::kInternal) == static_cast<int>(Code::kInternal));
  return {static_cast<ErrorCode>(status.code()), status.message()};
}

Expected<std::unique_ptr<ModelHandle>> wrap(Result<limber::Model> model);

}  // namespace limber::bridge

#include "supernet/operators/operators.h"

#include <array>

#include "passes/slice_channels.h"

namespace limber {
namespace {

constexpr std::array kCatalogue = {
    OperatorDef{"skip", 1, 0, make_skip},
    OperatorDef{"shrink50", 1, 0.5, make_shrunk},
    OperatorDef{"shrink25", 1, 0.25, make_shrunk},
    OperatorDef{"merge2", 2, 0, make_merged},
    OperatorDef{"merge3", 3, 0, make_merged},
    OperatorDef{"low_rank50", 1, 0.5, make_low_rank},
    OperatorDef{"low_rank25", 1, 0.25, make_low_rank},
    OperatorDef{"depthwise_separable", 1, 0, make_depthwise_separable},
    OperatorDef{"grouped_shuffle2", 1, 0.5, make_grouped_shuffle},
    OperatorDef{"grouped_shuffle4", 1, 0.25, make_grouped_shuffle},
    OperatorDef{"fire", 1, 0.35, make_fire},
    OperatorDef{"bottleneck", 1, 0.35, make_bottleneck},
    OperatorDef{"dense_connection", 1, 0.35, make_dense_connection},
};

}  // namespace

std::span<const OperatorDef> all_operators() { return kCatalogue; }

Status detach(Replacement& replacement, const Parameters& params, std::string_view prefix) {
  Parameters named;
  for (const Value& value : replacement.graph.values()) {
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    const bool is_new = replacement.tensors.contains(value.name);
    LIMBER_ASSIGN(Tensor tensor, (is_new ? replacement.tensors : params).get(value.name));
    if (tensor.type() != value.type) {
      return invalid("parameter '{}' has type {}, the graph expects {}", value.name,
                     tensor.type().to_string(), value.type.to_string());
    }
    LIMBER_ASSIGN(tensor, tensor.copy());
    named.set(fmt::format("{}{}", prefix, value.name), std::move(tensor));
  }
  rename_parameters(replacement.graph, prefix);
  for (const std::string& name : replacement.tensors.names()) replacement.tensors.erase(name);
  for (const std::string& name : named.names()) {
    LIMBER_ASSIGN(Tensor tensor, named.get(name));
    replacement.tensors.set(name, std::move(tensor));
  }
  return {};
}

}  // namespace limber

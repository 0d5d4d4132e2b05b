#include <limits>

#include "ops/op_def.h"
#include "ops/rules.h"

namespace limber {
namespace {

struct Entry {
  std::string_view name;
  OpKind op;
  bool tanh_gelu = false;
  bool alpha = false, beta = false;  // which parameters count
};

constexpr Entry kEntries[] = {
    {"", OpKind::kIdentity},
    {"relu", OpKind::kRelu},
    {"leaky_relu", OpKind::kLeakyRelu, false, true},
    {"clip", OpKind::kClip, false, true, true},
    {"sigmoid", OpKind::kSigmoid},
    {"tanh", OpKind::kTanh},
    {"hard_sigmoid", OpKind::kHardSigmoid, false, true, true},
    {"hard_swish", OpKind::kHardSwish},
    {"silu", OpKind::kSilu},
    {"gelu", OpKind::kGelu},
    {"gelu_tanh", OpKind::kGelu, true},
    {"elu", OpKind::kElu, false, true},
    {"mish", OpKind::kMish},
    {"softplus", OpKind::kSoftplus},
};

const Entry* find_entry(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const Entry* find_entry(OpKind op, bool tanh_gelu) {
  for (const Entry& entry : kEntries) {
    if (entry.op == op && entry.tanh_gelu == tanh_gelu) return &entry;
  }
  return nullptr;
}

void set_or_erase(Attrs& attrs, std::string_view name, bool counts, double value) {
  if (counts) {
    attrs.set(name, value);
  } else {
    attrs.erase(name);
  }
}

}  // namespace

Activation fused_activation(const Attrs& attrs) {
  const Entry* entry = find_entry(attrs.s("act", ""));
  LIMBER_ASSERT(entry != nullptr);
  return {entry->op, attrs.f("act_alpha", 0), attrs.f("act_beta", 0), entry->tanh_gelu};
}

std::optional<Activation> as_activation(const Node& unary) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool tanh_gelu = unary.op == OpKind::kGelu && unary.attrs.s("approximate", "none") == "tanh";
  if (unary.op == OpKind::kIdentity || find_entry(unary.op, tanh_gelu) == nullptr) return std::nullopt;
  Activation activation{unary.op, 0, 0, tanh_gelu};
  switch (unary.op) {
    case OpKind::kClip:
      activation.alpha = unary.attrs.f("min", -kInfinity);
      activation.beta = unary.attrs.f("max", kInfinity);
      break;
    case OpKind::kHardSigmoid:
      activation.beta = unary.attrs.f("beta");
      [[fallthrough]];
    case OpKind::kLeakyRelu:
    case OpKind::kElu:
      activation.alpha = unary.attrs.f("alpha");
      break;
    default:
      break;
  }
  return activation;
}

void set_activation(Attrs& attrs, const Activation& activation) {
  const Entry* entry = find_entry(activation.op, activation.tanh_gelu);
  LIMBER_ASSERT(entry != nullptr);
  if (entry->op == OpKind::kIdentity) {
    attrs.erase("act");
  } else {
    attrs.set("act", std::string(entry->name));
  }
  set_or_erase(attrs, "act_alpha", entry->alpha, activation.alpha);
  set_or_erase(attrs, "act_beta", entry->beta, activation.beta);
}

Status rules::check_activation(const Attrs& attrs) {
  const std::string act = attrs.s("act", "");
  if (find_entry(act) != nullptr) return {};
  std::string list;
  for (const Entry& entry : kEntries) list += fmt::format("{}'{}'", list.empty() ? "" : ", ", entry.name);
  return invalid("attribute 'act' is '{}', expected one of {}", act, list);
}

bool rules::known_from_output(const Activation& activation) {
  switch (activation.op) {
    case OpKind::kRelu:
    case OpKind::kClip:
    case OpKind::kSigmoid:
    case OpKind::kTanh:
    case OpKind::kHardSigmoid:
    case OpKind::kSoftplus:
      return true;
    case OpKind::kLeakyRelu:
    case OpKind::kElu:
      return activation.alpha >= 0;
    default:
      return false;
  }
}

}  // namespace limber

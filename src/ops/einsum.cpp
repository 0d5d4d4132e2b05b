#include "ops/einsum.h"

#include <algorithm>
#include <map>

#include "ops/gradients.h"
#include "ops/rules.h"

namespace limber {
namespace {

using namespace rules;

constexpr std::string_view kEllipsis = "...";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> terms(1);
  for (char c : text) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  return terms;
}

// Letters before and after the ellipsis; nullopt: something else is in there.
struct Term {
  std::string head, tail;
  bool ellipsis = false;
  size_t letters() const { return head.size() + tail.size(); }
};

std::optional<Term> parse_term(std::string_view text) {
  Term term;
  const size_t dots = text.find(kEllipsis);
  term.ellipsis = dots != std::string_view::npos;
  term.head = text.substr(0, dots);
  if (term.ellipsis) term.tail = text.substr(dots + kEllipsis.size());
  const std::string all = term.head + term.tail;
  return std::all_of(all.begin(), all.end(), is_letter) ? std::optional<Term>(term) : std::nullopt;
}

// The labels of the last `count` of `total` ellipsis axes.
std::string ellipsis_labels(int count, int total) {
  std::string labels;
  for (int i = total - count; i < total; ++i) labels += static_cast<char>('0' + i);
  return labels;
}

std::string implicit_output(const std::vector<Term>& terms, int total) {
  std::map<char, int> uses;
  for (const Term& term : terms) {
    for (char c : term.head + term.tail) ++uses[c];
  }
  std::string output = ellipsis_labels(total, total);
  for (const auto& [label, count] : uses) {
    if (count == 1) output += label;
  }
  return output;
}

Result<std::string> explicit_output(std::string_view text, const std::vector<std::string>& inputs,
                                    int total) {
  const auto term = parse_term(text);
  if (!term)
    return invalid("the output '{}' of the equation has something else than letters and one '...'", text);
  if (total > 0 && !term->ellipsis)
    return invalid("the output '{}' of the equation lacks the '...' of the inputs", text);
  const std::string output = term->head + (term->ellipsis ? ellipsis_labels(total, total) : "") + term->tail;
  for (size_t i = 0; i < output.size(); ++i) {
    if (output.find(output[i], i + 1) != std::string::npos)
      return invalid("the output '{}' has '{}' twice", text, output[i]);
    const bool known = std::any_of(inputs.begin(), inputs.end(), [&](const std::string& input) {
      return input.find(output[i]) != std::string::npos;
    });
    if (!known) return invalid("the output '{}' has '{}', which no input has", text, output[i]);
  }
  return output;
}

}  // namespace

Result<EinsumAxes> parse_einsum(std::string_view equation, std::span<const int> ranks) {
  std::string text(equation);
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  const std::vector<std::string> parts = split(std::string_view(text).substr(0, arrow));
  if (parts.size() != ranks.size()) {
    return invalid("equation '{}' has {} terms for {} inputs", equation, parts.size(), ranks.size());
  }
  std::vector<Term> terms;
  int total = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto term = parse_term(parts[i]);
    if (!term)
      return invalid("term '{}' of equation '{}' has something else than letters and one '...'", parts[i],
                     equation);
    const int rest = ranks[i] - static_cast<int>(std::min<size_t>(term->letters(), kMaxRank + 1));
    if (rest < 0 || (rest > 0 && !term->ellipsis)) {
      return invalid("term '{}' of equation '{}' does not fit an input of rank {}", parts[i], equation,
                     ranks[i]);
    }
    total = std::max(total, rest);
    terms.push_back(*term);
  }
  EinsumAxes axes;
  for (size_t i = 0; i < terms.size(); ++i) {
    const int rest = ranks[i] - static_cast<int>(terms[i].letters());
    axes.inputs.push_back(terms[i].head + ellipsis_labels(rest, total) + terms[i].tail);
  }
  if (arrow == std::string::npos) {
    axes.output = implicit_output(terms, total);
  } else {
    LIMBER_ASSIGN(axes.output, explicit_output(std::string_view(text).substr(arrow + 2), axes.inputs, total));
  }
  return axes;
}

namespace {

// Adds what one axis says about the size of its label.
Status join_label(std::map<char, Dim>& sizes, char label, const Dim& size) {
  const auto [it, added] = sizes.emplace(label, size);
  if (added) return {};
  const bool broadcasts = !is_letter(label);
  if (broadcasts && size == Dim(1)) return {};
  if (broadcasts && it->second == Dim(1)) {
    it->second = size;
    return {};
  }
  const auto joined = unify(it->second, size);
  if (!joined)
    return invalid("axis '{}' has size {} and size {}", label, it->second.to_string(), size.to_string());
  it->second = *joined;
  return {};
}

Result<Types> infer_einsum(const InferArgs& args) {
  LIMBER_TRY(need_numeric(args.input(0), "input 0"));
  LIMBER_TRY(need_same_dtype(args));
  std::vector<int> ranks;
  for (const TensorType* type : args.inputs) ranks.push_back(type->rank());
  LIMBER_ASSIGN(const EinsumAxes axes, parse_einsum(args.attrs.s("equation"), ranks));
  std::map<char, Dim> sizes;
  for (size_t i = 0; i < axes.inputs.size(); ++i) {
    for (size_t a = 0; a < axes.inputs[i].size(); ++a) {
      LIMBER_TRY(join_label(sizes, axes.inputs[i][a], args.inputs[i]->shape[static_cast<int>(a)]));
    }
  }
  TensorType y{args.input(0).dtype, {}};
  for (char label : axes.output) y.shape.push_back(sizes.at(label));
  return Types{std::move(y)};
}

// One multiplication per input but the first and one addition for every point of the index space.
double flops_einsum(const Graph& graph, const Node& node) {
  std::vector<int> ranks;
  for (ValueId v : node.inputs) ranks.push_back(graph.type(v).rank());
  const auto axes = parse_einsum(node.attrs.s("equation"), ranks);
  LIMBER_ASSERT(axes.ok());
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < axes->inputs.size(); ++i) {
    for (size_t a = 0; a < axes->inputs[i].size(); ++a) {
      int64_t& size = sizes[axes->inputs[i][a]];
      const int64_t dim = graph.type(node.inputs[i]).shape.dim(static_cast<int>(a));
      if (size <= 1) size = dim;
    }
  }
  double points = static_cast<double>(node.inputs.size());
  for (const auto& [label, size] : sizes) points *= static_cast<double>(size);
  return points;
}

constexpr AttrSpec kEquation[] = {required("equation", AttrKind::kString)};

}  // namespace

constinit const OpDef kEinsumOp =
    gradients::with({OpKind::kEinsum, 1, -1, 1, 1, kEquation, infer_einsum, flops_einsum}, gradients::einsum);

}  // namespace limber

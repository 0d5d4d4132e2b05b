#include <algorithm>

#include "ops/einsum.h"
#include "ops/gradients.h"

namespace limber::gradients {
namespace {

// A value, to be seen under this shape, with one letter per axis.
struct Term {
  ValueId value;
  Shape shape;
  std::string labels;
};

bool is_ellipsis(char label) { return label >= '0' && label <= '9'; }

// Axes of the ellipsis broadcast. Without those of size 1 all sizes of a label are equal.
Term without_ones(const GradientContext& g, ValueId v, const std::string& labels) {
  const Shape shape = g.shape(v);
  Term term{v, {}, {}};
  for (int i = 0; i < shape.rank(); ++i) {
    const char label = labels[static_cast<size_t>(i)];
    if (is_ellipsis(label) && shape.dim(i) == 1) continue;
    term.labels += label;
    term.shape.push_back(shape[i]);
  }
  return term;
}

// Ellipsis axes get letters no term has.
void name_ellipsis(const std::vector<std::string*>& terms) {
  std::string used;
  for (const std::string* term : terms) used += *term;
  char next = 'a';
  for (char label = '0'; label <= '9'; ++label) {
    if (used.find(label) == std::string::npos) continue;
    while (used.find(next) != std::string::npos) next = next == 'z' ? 'A' : static_cast<char>(next + 1);
    used += next;
    for (std::string* term : terms) std::replace(term->begin(), term->end(), label, next);
  }
}

bool has_label_twice(const std::string& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels.find(labels[i], i + 1) != std::string::npos) return true;
  }
  return false;
}

// The product of the terms with these labels; labels that none has are broadcast along.
ValueId contract(GradientContext& g, const std::vector<Term>& terms, const std::string& labels,
                 const Shape& shape) {
  std::string equation, known;
  std::vector<ValueId> values;
  for (const Term& term : terms) {
    equation += (values.empty() ? "" : ",") + term.labels;
    values.push_back(g.reshape(term.value, term.shape));
  }
  Shape partial;
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool found = equation.find(labels[i]) != std::string::npos;
    if (found) known += labels[i];
    partial.push_back(found ? shape[static_cast<int>(i)] : Dim(1));
  }
  ValueId result = values[0];
  if (values.size() > 1 || terms[0].labels != known) {
    result = g.emit(OpKind::kEinsum, std::move(values), {{"equation", equation + "->" + known}});
  }
  return g.expand(g.reshape(result, partial), shape);
}

}  // namespace

void einsum(GradientContext& g) {
  std::vector<int> ranks;
  for (ValueId v : g.node().inputs) ranks.push_back(g.shape(v).rank());
  const auto axes = parse_einsum(g.attrs().s("equation"), ranks);
  if (!axes.ok()) return g.fail(axes.status());
  std::vector<Term> terms = {without_ones(g, g.dy(), axes->output)};
  for (size_t i = 0; i < ranks.size(); ++i) terms.push_back(without_ones(g, g.x(i), axes->inputs[i]));
  std::vector<std::string*> labels;
  for (Term& term : terms) labels.push_back(&term.labels);
  name_ellipsis(labels);
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!g.wants(i)) continue;
    const Term mine = terms[i + 1];
    if (has_label_twice(mine.labels)) {
      return g.fail(unsupported("the gradient of input {} of '{}', which takes a diagonal, is not known", i,
                                g.attrs().s("equation")));
    }
    std::vector<Term> others = terms;
    others.erase(others.begin() + static_cast<int64_t>(i) + 1);
    g.give(i, g.reshape(contract(g, others, mine.labels, mine.shape), g.shape(g.x(i))));
  }
}

}  // namespace limber::gradients

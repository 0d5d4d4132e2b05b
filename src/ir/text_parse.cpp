#include <algorithm>
#include <bit>
#include <charconv>

#include "ir/graph.h"
#include "ir/text_format.h"
#include "ir/text_lexer.h"

namespace limber {
namespace {

using text::Lexer;

constexpr size_t kMaxTextBytes = size_t{1} << 28;   // read of a text from outside; weights are not in it
constexpr size_t kMaxValues = size_t{1} << 22;      // that a text from outside may ask for
constexpr int64_t kMaxElements = int64_t{1} << 48;  // of one tensor; bytes stay far from overflow

template <typename T>
bool from_text(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

bool looks_like_float(std::string_view text) { return text.find_first_of(".ein") != std::string_view::npos; }

class Parser {
 public:
  Parser(std::string_view text, const std::map<std::string, Tensor>* constants)
      : lexer_(text), constants_(constants) {}

  Result<Graph> run() {
    if (lexer_.word() != "graph") return lexer_.fail("expected 'graph \"name\" {' at the start");
    LIMBER_ASSIGN(graph_.name, lexer_.quoted());
    LIMBER_TRY(lexer_.expect('{'));
    while (!lexer_.accept('}')) LIMBER_TRY(statement());
    if (!lexer_.at_end()) return lexer_.expected("nothing after the closing '}'");
    LIMBER_TRY(verify_structure(graph_));
    return std::move(graph_);
  }

 private:
  struct Target {
    std::string name;  // empty: an output nobody wants
    TensorType type;
  };

  Status statement() {
    if (graph_.num_values() > kMaxValues) return lexer_.fail(fmt::format("more than {} values", kMaxValues));
    const char c = lexer_.peek();
    if (c == '%' || c == '(') return node();
    const std::string_view word = lexer_.word();
    if (word == "_") return node(true);
    if (word == "input") return declaration(Role::kInput);
    if (word == "param") return declaration(Role::kParameter);
    if (word == "state") return declaration(Role::kState);
    if (word == "const") return constant();
    if (word == "output") return output();
    if (word.empty()) return lexer_.expected("a statement or '}'");
    return lexer_.fail(
        fmt::format("expected input, param, state, const, output, a node or '}}', found '{}'", word));
  }

  // --- values ---------------------------------------------------------------------------------------

  Result<std::string> new_name() {
    LIMBER_TRY(lexer_.expect('%'));
    LIMBER_ASSIGN(std::string name, lexer_.name("a value name"));
    if (graph_.find(name)) return lexer_.fail(fmt::format("the name '{}' is defined twice", name));
    return name;
  }

  Result<ValueId> used_value() {
    LIMBER_TRY(lexer_.expect('%'));
    LIMBER_ASSIGN(const std::string name, lexer_.name("a value name"));
    const auto found = graph_.find(name);
    if (!found) return lexer_.fail(fmt::format("'{}' is not defined above", name));
    return *found;
  }

  Result<Shape> dims(char close) {
    std::vector<Dim> dims;
    if (lexer_.accept(close)) return Shape();
    do {
      const std::string_view text = lexer_.number();
      if (text.empty()) return lexer_.expected("a dimension like 3, N or 2N+1");
      const auto dim = parse_dim(text);
      if (!dim) return lexer_.fail(fmt::format("expected a dimension like 3, N or 2N+1, found '{}'", text));
      if (dims.size() == kMaxRank) return lexer_.fail(fmt::format("more than {} dimensions", kMaxRank));
      dims.push_back(*dim);
    } while (lexer_.accept(','));
    LIMBER_TRY(lexer_.expect(close));
    return Shape(std::move(dims));
  }

  Result<TensorType> type() {
    const std::string_view word = lexer_.word();
    const auto dtype = parse_dtype(word);
    if (word.empty()) return lexer_.expected("a type like f32[N,3]");
    if (!dtype) return lexer_.fail(fmt::format("expected an element type like f32 or i64, found '{}'", word));
    LIMBER_TRY(lexer_.expect('['));
    LIMBER_ASSIGN(Shape shape, dims(']'));
    if (shape.is_constant() && !checked_elements(shape.dims(), kMaxElements)) {
      return lexer_.fail(fmt::format("[{}] is negative or too large", shape.to_string()));
    }
    return TensorType{*dtype, std::move(shape)};
  }

  Status declaration(Role role) {
    LIMBER_ASSIGN(const std::string name, new_name());
    LIMBER_TRY(lexer_.expect(':'));
    LIMBER_ASSIGN(TensorType value_type, type());
    if (role == Role::kInput) {
      graph_.add_input(name, std::move(value_type));
    } else {
      graph_.add_parameter(name, std::move(value_type), role);
    }
    return {};
  }

  // --- constants ------------------------------------------------------------------------------------

  Status constant() {
    LIMBER_ASSIGN(const std::string name, new_name());
    LIMBER_TRY(lexer_.expect(':'));
    LIMBER_ASSIGN(const TensorType value_type, type());
    if (!value_type.shape.is_constant()) return lexer_.fail("the shape of a constant has no symbols");
    LIMBER_TRY(lexer_.expect('='));
    if (lexer_.hash_mark_next()) return named_constant(name, value_type);
    LIMBER_TRY(lexer_.expect('{'));
    std::vector<std::byte> bytes;
    int64_t count = 0;
    if (!lexer_.accept('}')) {
      do {
        LIMBER_TRY(element(value_type.dtype, bytes));
        ++count;
      } while (lexer_.accept(','));
      LIMBER_TRY(lexer_.expect('}'));
    }
    if (count != value_type.shape.elements()) {
      return lexer_.fail(fmt::format("constant '{}': {} has {} elements, found {}", name,
                                     value_type.to_string(), value_type.shape.elements(), count));
    }
    LIMBER_ASSIGN(Tensor tensor, Tensor::allocate(value_type));
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(tensor.raw()));
    graph_.add_constant(name, std::move(tensor));
    return {};
  }

  Status named_constant(const std::string& name, const TensorType& value_type) {
    LIMBER_ASSIGN(const uint64_t wanted, lexer_.hash_mark());
    const auto found =
        constants_ == nullptr ? std::map<std::string, Tensor>::const_iterator() : constants_->find(name);
    if (constants_ == nullptr || found == constants_->end()) {
      return lexer_.fail(
          fmt::format("constant '{}': its bytes are not in the text and were not given", name));
    }
    const Tensor& tensor = found->second;
    if (!tensor.valid() || tensor.type() != value_type) {
      return lexer_.fail(fmt::format("constant '{}': the bytes given are {}, expected {}", name,
                                     tensor.type().to_string(), value_type.to_string()));
    }
    if (text::constant_hash(tensor) != wanted) {
      return lexer_.fail(fmt::format("constant '{}': the bytes given have hash {:016x}, expected {:016x}",
                                     name, text::constant_hash(tensor), wanted));
    }
    graph_.add_constant(name, tensor);
    return {};
  }

  template <typename T>
  static void append(std::vector<std::byte>& bytes, T value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof(T));
  }

  Status element(DType dtype, std::vector<std::byte>& bytes) {
    switch (dtype) {
      case DType::kF32:
        return float_element<float, uint32_t>(bytes, [](float v) { return v; });
      case DType::kF64:
        return float_element<double, uint64_t>(bytes, [](double v) { return v; });
      case DType::kF16:
        return float_element<float, uint16_t>(bytes, float_to_half);
      case DType::kBF16:
        return float_element<float, uint16_t>(bytes, float_to_bfloat16);
      case DType::kI8:
        return int_element<int8_t>(bytes);
      case DType::kU8:
        return int_element<uint8_t>(bytes);
      case DType::kI16:
        return int_element<int16_t>(bytes);
      case DType::kU16:
        return int_element<uint16_t>(bytes);
      case DType::kI32:
        return int_element<int32_t>(bytes);
      case DType::kU32:
        return int_element<uint32_t>(bytes);
      case DType::kI64:
        return int_element<int64_t>(bytes);
      case DType::kU64:
        return int_element<uint64_t>(bytes);
      case DType::kBool:
        return bool_element(bytes);
    }
    LIMBER_UNREACHABLE();
  }

  template <typename Float, typename Bits, typename Store>
  Status float_element(std::vector<std::byte>& bytes, const Store& store) {
    const std::string_view text = lexer_.number();
    if (text == "nan" && lexer_.peek() == '(') {
      LIMBER_ASSIGN(const uint64_t bits, nan_bits());
      if (bits > std::numeric_limits<Bits>::max()) return lexer_.fail("the NaN has more bits than its type");
      append(bytes, static_cast<Bits>(bits));
      return {};
    }
    Float value = 0;
    LIMBER_TRY(float_value(text, value));
    append(bytes, store(value));
    return {};
  }

  template <typename T>
  Status int_element(std::vector<std::byte>& bytes) {
    T value = 0;
    LIMBER_TRY(int_value(lexer_.number(), value));
    append(bytes, value);
    return {};
  }

  Status bool_element(std::vector<std::byte>& bytes) {
    const std::string_view word = lexer_.word();
    if (word != "true" && word != "false") return lexer_.fail("expected true or false");
    append(bytes, static_cast<uint8_t>(word == "true"));
    return {};
  }

  // --- numbers --------------------------------------------------------------------------------------

  template <typename T>
  Status int_value(std::string_view text, T& value) {
    if (text.empty()) return lexer_.expected("an integer");
    if (from_text(text, value)) return {};
    return lexer_.fail(fmt::format("expected an integer of {} bits, found '{}'", 8 * sizeof(T), text));
  }

  template <typename T>
  Status float_value(std::string_view text, T& value) {
    if (text.empty()) return lexer_.expected("a number");
    if (text == "nan") {
      value = std::numeric_limits<T>::quiet_NaN();
    } else if (text.find("nan") != std::string_view::npos || !from_text(text, value)) {
      return lexer_.fail(fmt::format("expected a number in range, found '{}'", text));
    }
    return {};
  }

  // "(0x7fc00001)" after nan.
  Result<uint64_t> nan_bits() {
    LIMBER_TRY(lexer_.expect('('));
    const std::string_view text = lexer_.word();
    uint64_t bits = 0;
    const char* end = text.data() + text.size();
    if (!text.starts_with("0x") || std::from_chars(text.data() + 2, end, bits, 16).ptr != end ||
        text.size() < 3) {
      return lexer_.fail("expected the bits of the NaN like 0x7fc00001");
    }
    LIMBER_TRY(lexer_.expect(')'));
    return bits;
  }

  // --- nodes ----------------------------------------------------------------------------------------

  Status node(bool underscore_read = false) {
    std::vector<Target> targets;
    if (underscore_read || !lexer_.accept('(')) {
      bool more = true;
      for (bool first = true; more; first = false) {
        LIMBER_ASSIGN(Target next, target(first && underscore_read));
        const auto same = [&](const Target& t) { return !t.name.empty() && t.name == next.name; };
        if (std::any_of(targets.begin(), targets.end(), same)) {
          return lexer_.fail(fmt::format("the name '{}' is defined twice", next.name));
        }
        targets.push_back(std::move(next));
        more = lexer_.accept(',');
      }
    } else {
      LIMBER_TRY(lexer_.expect(')'));
    }
    LIMBER_TRY(lexer_.expect('='));
    const std::string_view op_text = lexer_.word();
    const auto op = parse_op(op_text);
    if (op_text.empty()) return lexer_.expected("an operator");
    if (!op) return lexer_.fail(fmt::format("'{}' is not an operator of this release", op_text));
    LIMBER_ASSIGN(std::vector<ValueId> inputs, arguments());
    LIMBER_ASSIGN(Attrs attrs, attributes());
    std::string name;
    if (lexer_.peek() == '"') {
      LIMBER_ASSIGN(name, lexer_.quoted());
    }
    add_node(*op, std::move(inputs), std::move(attrs), targets, std::move(name));
    return {};
  }

  Result<Target> target(bool underscore_read) {
    if (underscore_read) return Target{};
    if (lexer_.peek() != '%') {
      if (lexer_.word() != "_") return lexer_.expected("%name or _");
      return Target{};
    }
    Target target;
    LIMBER_ASSIGN(target.name, new_name());
    LIMBER_TRY(lexer_.expect(':'));
    LIMBER_ASSIGN(target.type, type());
    return target;
  }

  Result<std::vector<ValueId>> arguments() {
    std::vector<ValueId> values;
    LIMBER_TRY(lexer_.expect('('));
    if (lexer_.accept(')')) return values;
    do {
      if (lexer_.peek() == '%') {
        LIMBER_ASSIGN(values.emplace_back(), used_value());
      } else if (lexer_.word() == "_") {
        values.push_back(kNoValue);
      } else {
        return lexer_.expected("%name or _");
      }
    } while (lexer_.accept(','));
    LIMBER_TRY(lexer_.expect(')'));
    return values;
  }

  void add_node(OpKind op, std::vector<ValueId> inputs, Attrs attrs, const std::vector<Target>& targets,
                std::string name) {
    std::vector<TensorType> types;
    std::string_view first_name;
    for (const Target& t : targets) {
      if (t.name.empty()) continue;
      if (types.empty()) first_name = t.name;
      types.push_back(t.type);
    }
    const NodeId id = graph_.add_node(op, std::move(inputs), std::move(attrs), std::move(types), first_name);
    const std::vector<ValueId> added = graph_.node(id).outputs;
    std::vector<ValueId> outputs;
    size_t next = 0;
    for (const Target& t : targets) {
      if (t.name.empty()) {
        outputs.push_back(kNoValue);
        continue;
      }
      const ValueId v = added[next++];
      // A sibling may hold this name for now.
      if (const auto holder = graph_.find(t.name); holder && *holder != v) graph_.rename(*holder, {});
      graph_.rename(v, t.name);
      outputs.push_back(v);
    }
    graph_.mutable_node(id).outputs = std::move(outputs);
    graph_.mutable_node(id).name = std::move(name);
  }

  // --- attributes -----------------------------------------------------------------------------------

  Result<Attrs> attributes() {
    Attrs attrs;
    if (!lexer_.accept('{') || lexer_.accept('}')) return attrs;
    do {
      LIMBER_ASSIGN(const std::string name, lexer_.name("an attribute name"));
      if (attrs.has(name)) return lexer_.fail(fmt::format("attribute '{}' is given twice", name));
      LIMBER_TRY(lexer_.expect('='));
      LIMBER_ASSIGN(AttrValue value, attribute());
      attrs.set(name, std::move(value));
    } while (lexer_.accept(','));
    LIMBER_TRY(lexer_.expect('}'));
    return attrs;
  }

  Result<AttrValue> attribute() {
    const char c = lexer_.peek();
    if (c == '"') {
      LIMBER_ASSIGN(std::string text, lexer_.quoted());
      return AttrValue(std::move(text));
    }
    if (lexer_.accept('<')) {
      LIMBER_ASSIGN(Shape shape, dims('>'));
      return AttrValue(std::move(shape));
    }
    if (lexer_.accept('[')) return list();
    return scalar();
  }

  Result<AttrValue> scalar() {
    const std::string_view text = lexer_.number();
    if (text.empty()) return lexer_.expected("a number, a string, [..] or <..>");
    if (text == "nan" && lexer_.peek() == '(') {
      LIMBER_ASSIGN(const uint64_t bits, nan_bits());
      return AttrValue(std::bit_cast<double>(bits));
    }
    if (looks_like_float(text)) {
      double value = 0;
      LIMBER_TRY(float_value(text, value));
      return AttrValue(value);
    }
    int64_t value = 0;
    LIMBER_TRY(int_value(text, value));
    return AttrValue(value);
  }

  Result<AttrValue> list() {
    std::vector<int64_t> ints;
    std::vector<double> floats;
    if (!lexer_.accept(']')) {
      do {
        LIMBER_ASSIGN(const AttrValue item, scalar());
        if (const auto* i = std::get_if<int64_t>(&item)) ints.push_back(*i);
        if (const auto* f = std::get_if<double>(&item)) floats.push_back(*f);
        if (!ints.empty() && !floats.empty()) {
          return lexer_.fail("the list mixes integers and floats; write 1.0 for a float");
        }
      } while (lexer_.accept(','));
      LIMBER_TRY(lexer_.expect(']'));
    } else if (lexer_.accept('f')) {
      return AttrValue(std::move(floats));
    }
    if (!floats.empty()) return AttrValue(std::move(floats));
    return AttrValue(std::move(ints));
  }

  // --- outputs --------------------------------------------------------------------------------------

  Status output() {
    LIMBER_ASSIGN(const ValueId value, used_value());
    std::string name = graph_.value(value).name;
    ValueId rows = kNoValue;
    if (lexer_.accept_word("as")) {
      LIMBER_ASSIGN(name, lexer_.quoted());
    }
    if (lexer_.accept_word("rows")) {
      LIMBER_ASSIGN(rows, used_value());
    }
    graph_.add_output(value, name, rows);
    if (lexer_.accept_word("into")) {
      LIMBER_ASSIGN(graph_.mutable_outputs().back().into, used_value());
    }
    return {};
  }

  Lexer lexer_;
  const std::map<std::string, Tensor>* constants_;
  Graph graph_;
};

}  // namespace

Result<Graph> parse(std::string_view text, const std::map<std::string, Tensor>* constants) {
  if (text.size() > kMaxTextBytes) {
    return error(Code::kResourceExhausted, "graph text of {} bytes, at most {} are read", text.size(),
                 kMaxTextBytes);
  }
  return Parser(text, constants).run();
}

}  // namespace limber

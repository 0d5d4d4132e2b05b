#include "io/model_card.h"

#include "base/file.h"
#include "io/json_fields.h"
#include "io/wire.h"

namespace limber {
namespace {

constexpr const char* kInputKey = "limber.input";
constexpr const char* kClassesKey = "limber.classes";
constexpr int kMaxCardDepth = 4;  // of nested JSON; ours has 2

Result<ModelCard> parse_card(const std::string& input, const std::string& classes) {
  ModelCard card;
  LIMBER_ASSIGN(const nlohmann::json object, parse_json_object(input, kMaxCardDepth));
  LIMBER_TRY(read_input(object, card.input));
  LIMBER_ASSIGN(const nlohmann::json names, parse_json_object(classes, kMaxCardDepth));
  JsonFields in(names, kClassesKey);
  const nlohmann::json* list = in.find("classes");
  LIMBER_TRY(in.status());
  LIMBER_TRY(read_classes(*list, card.classes));
  return card;
}

}  // namespace

std::map<std::string, std::string> card_texts(const ModelCard& card) {
  const auto text = [](const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  return {{kInputKey, text(write_input(card.input))},
          {kClassesKey, text(nlohmann::ordered_json{{"classes", card.classes}})}};
}

Result<std::optional<ModelCard>> read_card(const std::string& onnx_file) {
  LIMBER_ASSIGN(const auto file, os_files().map(onnx_file));
  const auto texts = onnx_io::model_metadata(file->bytes());
  if (!texts) return corrupt("{}: not an ONNX file", onnx_file);
  const auto input = texts->find(kInputKey), classes = texts->find(kClassesKey);
  if (input == texts->end() || classes == texts->end()) return std::optional<ModelCard>();
  auto card = parse_card(input->second, classes->second);
  if (!card.ok()) return corrupt("{}: metadata 'limber': {}", onnx_file, card.status().message());
  return std::optional(*std::move(card));
}

}  // namespace limber

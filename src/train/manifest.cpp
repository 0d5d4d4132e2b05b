#include "train/manifest.h"

#include "base/hash.h"
#include "io/json_fields.h"

namespace limber {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "limber checkpoint";
constexpr int kMaxDepth = 8;  // of nested JSON; ours has 3

ordered_json write_state(const TrainingState& s) {
  return {{"step", s.step},          {"epoch", s.epoch},           {"batch", s.batch},
          {"loss_sum", s.loss_sum},  {"correct", s.correct},       {"images", s.images},
          {"seconds", s.seconds},    {"best_epoch", s.best_epoch}, {"best_accuracy", s.best_accuracy},
          {"best_loss", s.best_loss}};
}

Status read_state(const json& object, TrainingState& s) {
  JsonFields in(object, "state");
  in.read("step", s.step, 0, INT64_MAX);
  in.read("epoch", s.epoch, 0, INT64_MAX);
  in.read("batch", s.batch, 0, INT64_MAX);
  in.read("loss_sum", s.loss_sum);
  in.read("correct", s.correct, 0, INT64_MAX);
  in.read("images", s.images, 0, INT64_MAX);
  in.read("seconds", s.seconds);
  in.read("best_epoch", s.best_epoch, -1, INT64_MAX);
  in.read("best_accuracy", s.best_accuracy);
  in.read("best_loss", s.best_loss);
  return in.status();
}

Status read_parts(JsonFields& in, Manifest& manifest) {
  CheckpointInfo& info = manifest.info;
  const json *state = in.find("state"), *input = in.find("input"), *options = in.find("options"),
             *classes = in.find("classes"), *notes = in.find("notes"), *files = in.find("files");
  uint64_t recorded = 0;
  in.read_hex("seed", info.seed);
  in.read_hex("fingerprint", recorded);
  LIMBER_TRY(in.status());
  LIMBER_TRY(read_state(*state, info.state));
  LIMBER_TRY(read_input(*input, info.input));
  LIMBER_TRY(read_texts(*options, "options", info.options));
  LIMBER_TRY(read_texts(*notes, "notes", info.notes));
  LIMBER_TRY(read_classes(*classes, info.classes));
  if (recorded != fingerprint(info.options)) return corrupt("'options' do not match 'fingerprint'");
  return read_files(*files, manifest.files);
}

}  // namespace

uint64_t fingerprint(const OptionTexts& options) {
  Hasher hasher;
  for (const auto& [name, value] : options) hasher.add(name).add(value);
  return hasher.digest();
}

std::string format_manifest(const Manifest& manifest) {
  const CheckpointInfo& info = manifest.info;
  ordered_json out = {{"format", kFormat}, {"version", kCheckpointVersion}};
  out["state"] = write_state(info.state);
  out["seed"] = format_hex(info.seed);
  out["fingerprint"] = format_hex(fingerprint(info.options));
  out["options"] = info.options;
  out["input"] = write_input(info.input);
  out["classes"] = info.classes;
  out["notes"] = info.notes;
  out["files"] = write_files(manifest.files);
  return format_json(out);
}

Result<Manifest> parse_manifest(std::string_view text) {
  LIMBER_ASSIGN(const json object, parse_json_object(text, kMaxDepth));
  JsonFields in(object, "");
  LIMBER_TRY(check_format(in, kFormat, kCheckpointVersion, "begin the training anew"));
  Manifest manifest;
  LIMBER_TRY(read_parts(in, manifest));
  return manifest;
}

}  // namespace limber

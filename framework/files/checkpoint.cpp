#include "framework/files/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/json.h"
#include "framework/parse_number.h"
#include "framework/random.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "antichain checkpoint";
constexpr size_t seal_bytes = 32;

class Newer : public Error {
 public:
  using Error::Error;
};

// Returns the end of the text, given all text before it.
std::string seal(std::string_view text) {
  return fmt::format(",\n \"xxh3\": \"{:016x}\"\n}}\n", hash_bytes(text));
}

Json json_of(const CheckpointFile& file) {
  Json tensors = Json::array();
  for (const CheckpointTensor& t : file.tensors)
    tensors.push_back({{"path", t.path}, {"type", t.is_float ? "float32" : "int64"}, {"shape", t.shape}});
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"xxh3", fmt::format("{:016x}", file.hash)},
          {"tensors", tensors}};
}

// Keeps all bits of the number, infinities and NaN included.
std::string digits(double x) { return fmt::format("{}", x); }

double number(const JsonReader& reader) {
  const auto x = parse_number<double>(reader.string());
  if (!x) reader.fail("a number is expected here");
  return *x;
}

Json json_of(const BestEvaluation& b) {
  return {{"step", b.step}, {"loss", digits(b.loss)}, {"accuracy", digits(b.accuracy)}, {"since", b.since}};
}

BestEvaluation best_from(JsonReader reader) {
  const BestEvaluation b{.step = reader.at("step").integer(1),
                         .loss = number(reader.at("loss")),
                         .accuracy = number(reader.at("accuracy")),
                         .since = reader.at("since").integer()};
  reader.done();
  return b;
}

LastEvaluation last_from(JsonReader reader) {
  const LastEvaluation last{.step = reader.at("step").integer(),
                            .loss = number(reader.at("loss")),
                            .accuracy = number(reader.at("accuracy"))};
  reader.done();
  return last;
}

Json json_of(const TrainPosition& p) {
  Json json = {{"step", p.step},
               {"epoch", p.epoch},
               {"batch", p.batch},
               {"epoch_steps", p.epoch_steps},
               {"epoch_loss", digits(p.epoch_loss)},
               {"epoch_correct", digits(p.epoch_correct)},
               {"epoch_s", digits(p.epoch_s)},
               {"loss", digits(p.loss)}};
  if (p.best.step > 0) json["best"] = json_of(p.best);
  if (p.last.step != p.best.step)
    json["last"] = {
        {"step", p.last.step}, {"loss", digits(p.last.loss)}, {"accuracy", digits(p.last.accuracy)}};
  return json;
}

TrainPosition position_from(JsonReader reader) {
  TrainPosition p{.step = reader.at("step").integer(),
                  .epoch = reader.at("epoch").integer(),
                  .batch = reader.at("batch").integer(),
                  .epoch_steps = reader.at("epoch_steps").integer(),
                  .epoch_loss = number(reader.at("epoch_loss")),
                  .epoch_correct = number(reader.at("epoch_correct")),
                  .epoch_s = number(reader.at("epoch_s")),
                  .loss = number(reader.at("loss"))};
  if (reader.has("best")) p.best = best_from(reader.at("best"));
  if (reader.has("last"))
    p.last = last_from(reader.at("last"));
  else if (p.best.since == 0)  // older versions do not say the last one where another was better
    p.last = {.step = p.best.step, .loss = p.best.loss, .accuracy = p.best.accuracy};
  reader.done();
  return p;
}

uint64_t hash_from(const JsonReader& reader) {
  const std::string text = reader.string();
  const auto hash = parse_number<uint64_t>(text, 16);
  if (text.size() != 16 || !hash) reader.fail("a hash of 16 hexadecimal digits is expected here");
  return *hash;
}

// No other name is ever opened, so none leads out of the folder.
std::string file_name_from(const JsonReader& reader) {
  const std::string name = reader.string();
  if (!is_checkpoint_file_name(name))
    reader.fail(fmt::format("'{}' is not the name of a stage's file", name));
  return name;
}

CheckpointTensor tensor_from(JsonReader reader) {
  CheckpointTensor tensor{.path = reader.at("path").string()};
  const JsonReader type = reader.at("type");
  tensor.is_float = type.string() == "float32";
  if (!tensor.is_float && type.string() != "int64") type.fail("float32 or int64 is expected here");
  for (const JsonReader& extent : reader.at("shape").elements()) tensor.shape.push_back(extent.integer());
  reader.done();
  return tensor;
}

CheckpointFile file_from(JsonReader reader) {
  CheckpointFile file{.name = file_name_from(reader.at("name")),
                      .bytes = reader.at("bytes").integer(),
                      .hash = hash_from(reader.at("xxh3"))};
  for (const JsonReader& tensor : reader.at("tensors").elements())
    file.tensors.push_back(tensor_from(tensor));
  reader.done();
  return file;
}

Facts facts_from(const nlohmann::json& root, JsonReader& reader, const char* key) {
  const JsonReader field = reader.at(key);
  if (!root[key].is_object()) field.fail("an object {…} is expected here");
  Facts facts;
  for (const auto& [name, value] : root[key].items()) {
    if (!value.is_string()) field.fail(fmt::format("\"{}\" is not a text", name));
    facts[name] = value.get<std::string>();
  }
  return facts;
}

void check_names_differ(const Manifest& manifest, const JsonReader& reader) {
  std::set<std::string> files, tensors;
  for (const CheckpointFile& file : manifest.files) {
    if (!files.insert(file.name).second) reader.fail(fmt::format("the file {} stands twice", file.name));
    for (const CheckpointTensor& tensor : file.tensors)
      if (!tensors.insert(tensor.path).second)
        reader.fail(fmt::format("the tensor {} stands twice", tensor.path));
  }
}

// The text is whole, so this is no damage. Newer formats keep these fields and the hash at the end.
void refuse_newer(const nlohmann::json& root, const std::string& origin) {
  if (!root.is_object() || !root.contains("version") || !root["version"].is_number_integer()) return;
  const auto version = root["version"].get<int64_t>();
  if (version <= Manifest::format_version) return;
  const auto program = root.find("program");
  throw Newer(fmt::format("{} has format {} of checkpoints, written by antichain {}, but this program "
                          "knows formats up to {}",
                          origin, version,
                          program != root.end() && program->is_string() ? program->get<std::string>() : "?",
                          Manifest::format_version),
              "resume with that version of antichain or a newer one");
}

Manifest manifest_from(const nlohmann::json& root, const std::string& origin) {
  JsonReader reader(root, origin);
  if (reader.at("format").string() != format_name) reader.fail("this is no checkpoint's manifest");
  reader.at("version").integer(1);
  Manifest m{.program = reader.at("program").string(),
             .model = facts_from(root, reader, "model"),
             .recipe = facts_from(root, reader, "recipe"),
             .setting = facts_from(root, reader, "setting"),
             .position = position_from(reader.at("position"))};
  for (const JsonReader& file : reader.at("files").elements()) m.files.push_back(file_from(file));
  reader.at("xxh3");
  reader.done();
  check_names_differ(m, reader);
  return m;
}

}  // namespace

std::string checkpoint_file_name(int stage) { return fmt::format("stage-{}.h5", stage); }

bool is_checkpoint_file_name(std::string_view name) {
  return name.starts_with("stage-") && name.ends_with(".h5") && name.size() >= 10 && name.size() <= 15 &&
         std::all_of(name.begin() + 6, name.end() - 3, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> differences(const Facts& there, const Facts& here) {
  std::vector<std::string> sentences;
  for (const auto& [name, value] : there) {
    const auto it = here.find(name);
    if (it == here.end())
      sentences.push_back(fmt::format("{} is {} in the checkpoint, but not known here", name, value));
    else if (it->second != value)
      sentences.push_back(fmt::format("{} is {} in the checkpoint, but {} here", name, value, it->second));
  }
  for (const auto& [name, value] : here)
    if (!there.contains(name))
      sentences.push_back(fmt::format("{} is not known in the checkpoint, but {} here", name, value));
  return sentences;
}

std::string to_json(const CheckpointFile& file) { return json_of(file).dump(); }

CheckpointFile checkpoint_file_from_json(const std::string& text, const std::string& origin) {
  const nlohmann::json value = parse_json(text, origin);
  return file_from(JsonReader(value, origin));
}

std::string to_json(const Manifest& m) {
  Json files = Json::array();
  for (const CheckpointFile& file : m.files) files.push_back(json_of(file));
  const Json json = {{"format", format_name},
                     {"version", Manifest::format_version},
                     {"program", m.program},
                     {"model", m.model},
                     {"recipe", m.recipe},
                     {"setting", m.setting},
                     {"position", json_of(m.position)},
                     {"files", files}};
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // without "\n}"
  return text + seal(text);
}

Manifest manifest_from_json(const std::string& text, const std::string& origin) {
  const std::string_view all(text), above = all.substr(0, all.size() - std::min(all.size(), seal_bytes));
  if (above.empty() || all.substr(above.size()) != seal(above))
    throw Damaged(fmt::format("{} is damaged: it does not end in the hash of its text", origin),
                  "take an older checkpoint; a manifest can't be edited");
  try {
    const nlohmann::json root = parse_json(text, origin);
    refuse_newer(root, origin);
    return manifest_from(root, origin);
  } catch (const Newer&) {
    throw;
  } catch (const Error& error) {
    throw Damaged(error.what());
  }
}

}  // namespace antichain

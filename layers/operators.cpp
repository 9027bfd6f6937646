#include "layers/operators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <type_traits>

#include "framework/error.h"
#include "layers/layers.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;

template <class Visit>
void fields(Initialiser& o, Visit&& visit) {
  visit("kind", o.kind);
  visit("a", o.a);
}

constexpr int most_constants = 1'000'000;  // numbers of an option: one for each class, say

// Reads the fields that are there, and leaves the others as they are.
class ReadFields {
 public:
  explicit ReadFields(JsonReader& from) : from_(from) {}

  template <class T>
  void operator()(const char* name, T& value) {
    if (from_.has(name)) read(from_.at(name), value);
  }

 private:
  static void read(const JsonReader& from, std::string& value) { value = from.string(); }
  static void read(const JsonReader& from, bool& value) { value = from.boolean(); }
  static void read(const JsonReader& from, int& value) {
    value = int(from.integer(-most_option, most_option));
  }
  static void read(const JsonReader& from, int64_t& value) {
    value = from.integer(-std::numeric_limits<int64_t>::max());
  }
  static void read(const JsonReader& from, double& value) {
    value = from.number(std::numeric_limits<double>::lowest());
  }
  static void read(const JsonReader& from, float& value) {
    const double number = from.number(-double(std::numeric_limits<float>::max()));
    if (number > double(std::numeric_limits<float>::max()))
      from.fail("the number is too large for a float32");
    value = float(number);
  }

  // Reads one number for both, or two.
  template <class T>
  static std::pair<T, T> read_pair(const JsonReader& from) {
    T h{}, w{};
    if (!from.is_array()) {
      read(from, h);
      return {h, h};
    }
    const std::vector<JsonReader> both = from.elements();
    if (both.size() != 2) from.fail("one number or two, [height, width], are expected here");
    read(both[0], h), read(both[1], w);
    return {h, w};
  }
  static void read(const JsonReader& from, Extent& value) {
    const auto [h, w] = read_pair<int>(from);
    value = {h, w};
  }
  static void read(const JsonReader& from, Scale& value) {
    const auto [h, w] = read_pair<double>(from);
    if (std::max(h, w) > double(most_option)) from.fail(fmt::format("{} is the most", most_option));
    value = {h, w};
  }
  static void read(const JsonReader& from, Padding& value) {
    if (!from.has("before") && !from.has("after")) {
      Extent both = 0;
      read(from, both);
      value = both;
      return;
    }
    JsonReader sides = from;
    read(sides.at("before"), value.before), read(sides.at("after"), value.after);
    sides.done();
  }
  static void read(const JsonReader& from, Initialiser& value) {
    JsonReader parts = from;
    for (const char* part : {"kind", "a"}) parts.at(part);
    fields(value, ReadFields(parts));
    parts.done();
  }

  static void refuse_more(const JsonReader& from, size_t count, int most, std::string_view of_what) {
    if (count > size_t(most)) from.fail(fmt::format("{} {} are the most", most, of_what));
  }
  template <class T>
  static void read(const JsonReader& from, std::vector<T>& values) {
    const std::vector<JsonReader> all = from.elements();
    constexpr bool is_text = std::is_same_v<T, std::string>;
    constexpr int most = is_text                  ? ElementwiseProgram::most_steps
                         : std::is_same_v<T, int> ? int(Shape::max_rank)
                                                  : most_constants;
    refuse_more(from, all.size(), most, is_text ? "texts" : "numbers");
    values.resize(all.size());
    for (size_t i = 0; i < all.size(); ++i) read(all[i], values[i]);
  }
  static void read(const JsonReader& from, Shape& value) {
    std::vector<int64_t> extents;
    read(from, extents);
    refuse_more(from, extents.size(), Shape::max_rank, "numbers");
    value = Shape(extents);
  }
  template <class T>
  static void read(const JsonReader& from, std::optional<T>& value) {
    if constexpr (std::is_default_constructible_v<T>)
      read(from, value.emplace());
    else
      read(from, value.emplace(1));
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  static void read(const JsonReader& from, Enum& value) {
    const auto known = names(Enum{});
    const std::string given = from.string();
    const auto found = std::ranges::find(known, given);
    if (found == known.end())
      from.fail(fmt::format("\"{}\" is not known; known are {}", given, fmt::join(known, ", ")));
    value = Enum(found - known.begin());
  }

  JsonReader& from_;
};

class WriteFields {
 public:
  Json to = Json::object();

  template <class T>
  void operator()(const char* name, const T& value) {
    if (Json json = written(value); !json.is_null()) to[name] = std::move(json);
  }

 private:
  template <class T>
  requires std::is_arithmetic_v<T>
  static Json written(T value) { return value; }
  static Json written(const std::string& value) { return value; }
  // Writes the fewest digits that give the same float32: 1e-5, not 9.999999747378752e-06.
  static Json written(float value) { return std::stod(fmt::format("{}", value)); }
  template <class T>
  static Json pair(T h, T w) {
    return h == w ? Json(h) : Json{h, w};
  }
  static Json written(Extent value) { return pair(value.h, value.w); }
  static Json written(Scale value) { return pair(value.h, value.w); }
  static Json written(const Padding& value) {
    if (value.before == value.after) return written(value.before);
    return {{"before", written(value.before)}, {"after", written(value.after)}};
  }
  static Json written(Initialiser value) {
    WriteFields parts;
    fields(value, parts);
    return parts.to;
  }
  template <class T>
  static Json written(const std::vector<T>& values) {
    Json all = Json::array();
    for (const T& value : values) all.push_back(written(value));
    return all;
  }
  static Json written(const Shape& value) { return std::vector<int64_t>(value.begin(), value.end()); }
  template <class T>
  static Json written(const std::optional<T>& value) {
    return value ? written(*value) : Json();
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  static Json written(Enum value) { return names(value)[size_t(value)]; }
};

struct Row {
  std::string_view type;
  std::function<std::shared_ptr<const Op>(const std::string& node, JsonReader* options)> read;
  std::function<Json(const Op&)> options;
};

struct NoOptions {};
template <class Visit>
void fields(NoOptions&, Visit&&) {}

// `make` makes an operator from a node's name and options; `options` returns those of an operator.
template <class Options, class Make, class OptionsOf>
Row row(std::string_view type, Make make, OptionsOf options) {
  const auto read = [make](const std::string& node, JsonReader* from) -> std::shared_ptr<const Op> {
    Options given{};
    if (from) {
      fields(given, ReadFields(*from));
      from->done();
    }
    return make(node, given);
  };
  const auto write = [options](const Op& op) {
    Options given = options(op), usual{};
    WriteFields written, defaults;
    fields(given, written), fields(usual, defaults);
    Json differing = Json::object();
    for (const auto& [name, value] : written.to.items())
      if (!defaults.to.contains(name) || defaults.to[name] != value) differing[name] = value;
    return differing;
  };
  return {type, read, write};
}

template <class Of>
const Of& as(const Op& op) {
  return dynamic_cast<const Of&>(op);
}

// Makes the row of an operator that has its options as a member.
template <class Of, class Options>
Row row(std::string_view type) {
  return row<Options>(
      type, [](const std::string&, const Options& o) { return std::make_shared<Of>(o); },
      [](const Op& op) { return as<Of>(op).options; });
}

template <class Of>
Row row(std::string_view type) {
  return row<NoOptions>(
      type, [](const std::string&, const NoOptions&) { return std::make_shared<Of>(); },
      [](const Op&) { return NoOptions{}; });
}

Row pool(std::string_view type, Pool::Kind kind) {
  return row<PoolOptions>(
      type, [kind](const std::string&, const PoolOptions& o) { return std::make_shared<Pool>(kind, o); },
      [](const Op& op) { return as<Pool>(op).options; });
}

std::shared_ptr<const Op> make_activate(const std::string&, const ActivateOptions& o) {
  if (!o.function)
    throw Error(fmt::format("activate wants a function: {}", fmt::join(activation_names, ", ")));
  return std::make_shared<Activate>(*o.function);
}

// Reads {"op": …, "options": …} among other fields.
std::shared_ptr<const Op> read_part(JsonReader& from, const std::string& node) {
  const JsonReader type = from.at("op");
  if (type.string() == Computed::type_name) type.fail("a computed operator has none of its kind within it");
  if (!from.has("options")) return read_operator(type.string(), node, nullptr);
  JsonReader options = from.at("options");
  return read_operator(type.string(), node, &options);
}

void write_part(Json& to, const Op& op) {
  to["op"] = op.type();
  if (Json options = options_of(op); !options.empty()) to["options"] = std::move(options);
}

constexpr size_t most_parts = 1000;

std::vector<JsonReader> parts(JsonReader& from, const char* field) {
  if (!from.has(field)) return {};
  std::vector<JsonReader> all = from.at(field).elements();
  if (all.size() > most_parts) from.at(field).fail(fmt::format("{} are the most", most_parts));
  return all;
}

template <class Visit>
void fields(ParamSpec& o, Visit&& visit) {
  visit("name", o.name);
  visit("shape", o.shape);
  visit("init", o.init);
}

std::vector<ParamSpec> read_specs(JsonReader& from, const char* field) {
  std::vector<ParamSpec> specs;
  for (JsonReader& one : parts(from, field)) {
    ParamSpec spec;
    for (const char* needed : {"name", "shape"}) one.at(needed);
    fields(spec, ReadFields(one));
    one.done();
    const auto is_odd = [](unsigned char c) { return c <= ' ' || c == 0x7f || c == '/' || c == ','; };
    if (spec.name.empty() || std::ranges::any_of(spec.name, is_odd))
      one.fail("a name has no blanks, commas or slashes, and one character at least");
    for (const int64_t extent : spec.shape)
      if (extent < 1) one.fail("an extent is 1 at least");
    spec.shape.elements();
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::shared_ptr<const Op> read_computed(const std::string& node, JsonReader* from) {
  if (!from) throw Error("computed wants options: which operator it is, and what computes its parameters");
  ComputedOptions o;
  JsonReader of = from->at("of");
  o.of = read_part(of, node);
  of.done();
  o.parameters = read_specs(*from, "parameters");
  o.buffers = read_specs(*from, "buffers");
  for (JsonReader& step : parts(*from, "nodes")) {
    ComputedOptions::Step& to = o.steps.emplace_back();
    to.op = read_part(step, node);
    for (const JsonReader& input : parts(step, "inputs")) to.inputs.push_back(input.string());
    step.done();
  }
  for (JsonReader& value : parts(*from, "values")) {
    o.values.push_back(
        {value.at("parameter").string(), int(value.at("node").integer(0, int64_t(most_parts)))});
    value.done();
  }
  from->done();
  return std::make_shared<Computed>(std::move(o));
}

Json written_specs(const std::vector<ParamSpec>& specs) {
  Json all = Json::array();
  for (ParamSpec spec : specs) {
    WriteFields fields_of_spec;
    fields(spec, fields_of_spec);
    if (spec.init.kind == Initialiser::Kind::constant && spec.init.a == 0) fields_of_spec.to.erase("init");
    all.push_back(fields_of_spec.to);
  }
  return all;
}

Json computed_options(const Op& op) {
  const ComputedOptions& o = as<Computed>(op).options;
  Json to = Json::object();
  write_part(to["of"], *o.of);
  if (!o.parameters.empty()) to["parameters"] = written_specs(o.parameters);
  if (!o.buffers.empty()) to["buffers"] = written_specs(o.buffers);
  for (const ComputedOptions::Step& step : o.steps) {
    Json one = Json::object();
    write_part(one, *step.op);
    one["inputs"] = step.inputs;
    to["nodes"].push_back(std::move(one));
  }
  for (const auto& [parameter, step] : o.values)
    to["values"].push_back({{"parameter", parameter}, {"node", step}});
  return to;
}

const std::vector<Row>& rows() {
  using Name = const std::string&;
  static const std::vector<Row> table = {
      row<ActivateOptions>("activate", make_activate,
                           [](const Op& op) { return ActivateOptions{as<Activate>(op).function}; }),
      row<AdaptiveAveragePoolOptions>(
          "adaptive_average_pool",
          [](Name, const AdaptiveAveragePoolOptions& o) {
            return std::make_shared<AdaptiveAveragePool>(Extent(o.h, o.w));
          },
          [](const Op& op) {
            const Extent out = as<AdaptiveAveragePool>(op).out;
            return AdaptiveAveragePoolOptions{out.h, out.w};
          }),
      row<Add>("add"),
      row<AttentionOptions>(
          "attention",
          [](Name node, const AttentionOptions& o) { return std::make_shared<Attention>(o, node); },
          [](const Op& op) { return as<Attention>(op).options; }),
      pool("average_pool", Pool::Kind::average),
      row<BatchNorm, BatchNormOptions>("batch_norm"),
      row<ClassToken, ClassTokenOptions>("class_token"),
      {Computed::type_name, read_computed, computed_options},
      row<Concat>("concat"),
      row<Constant, ConstantOptions>("constant"),
      row<Conv2d, Conv2dOptions>("conv2d"),
      row<ConvTranspose2d, ConvTranspose2dOptions>("conv_transpose2d"),
      row<DropoutOptions>(
          "dropout", [](Name node, DropoutOptions o) { return std::make_shared<Dropout>(o.p, node); },
          [](const Op& op) { return DropoutOptions{as<Dropout>(op).p}; }),
      row<ElementwiseOptions>(
          "elementwise", [](Name, const ElementwiseOptions& o) { return std::make_shared<Elementwise>(o); },
          [](const Op& op) { return as<Elementwise>(op).options; }),
      row<Embedding, EmbeddingOptions>("embedding"),
      row<Flatten>("flatten"),
      row<FormulaLoss, FormulaLossOptions>("formula_loss"),
      row<Gather, GatherOptions>("gather"),
      row<GlobalAveragePool>("global_average_pool"),
      row<GroupNorm, GroupNormOptions>("group_norm"),
      row<Interpolate, InterpolateOptions>("interpolate"),
      row<LayerNorm, LayerNormOptions>("layer_norm"),
      row<LayerScale, LayerScaleOptions>("layer_scale"),
      row<Linear, LinearOptions>("linear"),
      row<MatmulOptions>(
          "matmul", [](Name, const MatmulOptions& o) { return std::make_shared<Matmul>(o); },
          [](const Op& op) { return as<Matmul>(op).options; }),
      pool("max_pool", Pool::Kind::max),
      row<MeanOptions>(
          "mean", [](Name, const MeanOptions& o) { return std::make_shared<Mean>(o.axes, o.keep_dims); },
          [](const Op& op) {
            return MeanOptions{as<Mean>(op).axes, as<Mean>(op).keep_dims};
          }),
      row<Multiply>("multiply"),
      row<PermuteOptions>(
          "permute", [](Name, const PermuteOptions& o) { return std::make_shared<Permute>(o.order); },
          [](const Op& op) { return PermuteOptions{as<Permute>(op).order}; }),
      row<Relu>("relu"),
      row<ReshapeOptions>(
          "reshape", [](Name, const ReshapeOptions& o) { return std::make_shared<Reshape>(o.shape); },
          [](const Op& op) { return ReshapeOptions{as<Reshape>(op).shape}; }),
      row<Rotary, RotaryOptions>("rotary"),
      row<Slice, SliceOptions>("slice"),
      row<Softmax>("softmax"),
      row<SoftmaxCrossEntropy, LossOptions>("softmax_cross_entropy"),
      row<SpectralNorm, SpectralNormOptions>("spectral_norm"),
      row<StochasticDepthOptions>(
          "stochastic_depth",
          [](Name node, StochasticDepthOptions o) {
            return std::make_shared<StochasticDepth>(o.p, o.drop, node);
          },
          [](const Op& op) {
            return StochasticDepthOptions{as<StochasticDepth>(op).p, as<StochasticDepth>(op).drop};
          }),
  };
  return table;
}

const Row& known(std::string_view type) {
  const auto found = std::ranges::find(rows(), type, &Row::type);
  if (found == rows().end())
    throw Error(fmt::format("there is no operator '{}'", type),
                fmt::format("known are {}", fmt::join(operator_types(), ", ")));
  return *found;
}

}  // namespace

std::shared_ptr<const Op> read_operator(std::string_view type, const std::string& node, JsonReader* options) {
  return known(type).read(node, options);
}

Json options_of(const Op& op) { return known(op.type()).options(op); }

std::vector<std::string> operator_types() {
  std::vector<std::string> types;
  for (const Row& row : rows()) types.emplace_back(row.type);
  return types;
}

}  // namespace antichain

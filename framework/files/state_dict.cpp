#include "framework/files/state_dict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "framework/error.h"

namespace antichain {
namespace {

// In a file a count is an int64 scalar.
std::vector<int64_t> file_shape(const ParamSpec& spec) {
  if (spec.dtype == DType::i32) return {};
  return {spec.shape.begin(), spec.shape.end()};
}

// Returns why a tensor of the file can't be this one; "" when it can.
std::string objection(const ParamSpec& spec, const NamedTensor& tensor) {
  const NamedTensor wanted{"", file_shape(spec), {}};
  if (tensor.shape != wanted.shape)
    return fmt::format("'{}' is {} in the file, but {} in the network", tensor.name, tensor.shape_text(),
                       wanted.shape_text());
  if (tensor.is_float() != (spec.dtype == DType::f32))
    return fmt::format("'{}' is {} in the file", tensor.name, tensor.type_text());
  return "";
}

// Returns the names that files have for a parameter besides its first one, which is the value.
StateDict::Names other_names(const Graph& graph) {
  if (!graph.state()) return {};
  StateDict::Names names = graph.state()->also;
  for (auto& [name, of] : names)
    if (const auto renamed = graph.state()->names.find(of); renamed != graph.state()->names.end())
      of = renamed->second;
  return names;
}

Tensor drawn(const StateEntry& entry, uint64_t seed) {
  const Tensor plain = Tensor::host({entry.spec->shape, entry.spec->dtype});
  initialise(plain, entry.spec->init, seed, entry.name);
  return plain;
}

}  // namespace

std::vector<StateEntry> state_entries(const Graph& graph) {
  std::vector<StateEntry> entries;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Signature& signature = graph[id].signature;
    for (const bool buffer : {false, true}) {
      const auto& specs = buffer ? signature.buffers : signature.params;
      const bool keeps = buffer && graph.state() && graph[id].name == graph.state()->keeper;
      const size_t own = specs.size() - (keeps ? graph.state()->kept.size() : 0);
      for (size_t i = 0; i < specs.size(); ++i)
        if (specs[i].of.empty())
          entries.push_back({id, int(i), buffer, &specs[i], full_name(graph[id], specs[i]),
                             graph.file_name(graph[id], specs[i]), i >= own});
    }
  }
  return entries;
}

NamedTensor to_named(const std::string& name, const Tensor& plain) {
  ANTICHAIN_CHECK(plain.layout() == Layout::plain, "weight files hold plain tensors");
  if (plain.dtype() == DType::i32) {
    ANTICHAIN_CHECK(plain.elements() == 1, "a count is one number");
    return {name, {}, std::vector<int64_t>{*plain.data<int32_t>()}};
  }
  ANTICHAIN_CHECK(plain.dtype() == DType::f32, "parameters are float32");
  const float* values = plain.data<float>();
  return {name,
          {plain.shape().begin(), plain.shape().end()},
          std::vector<float>(values, values + plain.elements())};
}

void from_named(const NamedTensor& tensor, const Tensor& plain, const std::string& origin) {
  const std::string why = objection({"", plain.shape(), {}, plain.dtype()}, tensor);
  if (!why.empty()) throw Error(fmt::format("{}: {}", origin, why));
  if (plain.dtype() == DType::f32) {
    std::memcpy(plain.raw(), tensor.data(), size_t(plain.bytes()));
    return;
  }
  const int64_t count = std::get<1>(tensor.values)[0];
  if (count < 0 || count > std::numeric_limits<int32_t>::max())
    throw Error(fmt::format("{}: '{}' is {}", origin, tensor.name, count), "counts are 0 to 2147483647");
  *plain.data<int32_t>() = int32_t(count);
}

int64_t file_bytes(const Graph& graph) {
  std::map<std::string, int64_t> times;  // that files have a tensor, beyond once
  for (const auto& [name, of] : other_names(graph)) ++times[of];
  int64_t bytes = 0;
  for (const StateEntry& entry : state_entries(graph))
    bytes += (1 + times[entry.file_name]) *
             (entry.spec->dtype == DType::i32 ? 8 : 4 * entry.spec->shape.elements());
  return bytes;
}

Weights with_all_names(const Graph& graph, const Weights& weights) {
  Weights all = weights;
  for (const auto& [name, of] : other_names(graph)) {
    const NamedTensor* tensor = weights.find(of);
    if (!tensor || weights.find(name)) continue;
    NamedTensor again = *tensor;
    again.name = name;
    all.add(std::move(again));
  }
  return all;
}

Weights initial_weights(const Graph& graph, uint64_t seed) {
  Weights weights;
  for (const StateEntry& entry : state_entries(graph))
    weights.add(to_named(entry.file_name, drawn(entry, seed)));
  return weights;
}

namespace {

// Returns what all names of a file begin with that data parallelism, compilers and modules around a network
// put before them.
std::string prefix_of(const Weights& weights) {
  std::string prefix;
  const auto all_begin = [&](const std::string& with) {
    return std::ranges::all_of(weights, [&](const NamedTensor& t) { return t.name.starts_with(with); });
  };
  for (bool longer = weights.size() > 0; longer;) {
    longer = false;
    for (const char* part : {"module.", "_orig_mod.", "model."})
      if (all_begin(prefix + part)) prefix += part, longer = true;
  }
  return prefix;
}

// The endings of names, now and in BERT's first files.
constexpr std::pair<std::string_view, std::string_view> names_once[] = {
    {"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}};

// Finds the tensors of a file by the names that entries have.
class ByEntry {
 public:
  ByEntry(const std::vector<StateEntry>& entries, const Weights& weights, const StateDict::Names& others)
      : weights_(weights) {
    for (const auto& [name, of] : others) others_[of].push_back(name);
    const auto has_any = [&] {
      return std::ranges::any_of(entries, [&](const StateEntry& e) { return find(e); });
    };
    if (has_any()) return;
    prefix_ = prefix_of(weights);
    if (has_any() || entries.empty()) return;
    const std::string& first = entries[0].file_name;
    left_out_ = first.substr(0, first.find('.') + 1);
  }
  const NamedTensor* find(const StateEntry& entry) const {
    const NamedTensor* found = named(entry.file_name);
    if (!found) found = named(entry.name);
    const std::vector<const NamedTensor*> others = by_other_names(entry);
    return found || others.empty() ? found : others.front();
  }
  std::vector<const NamedTensor*> by_other_names(const StateEntry& entry) const {
    std::vector<const NamedTensor*> found;
    if (const auto names = others_.find(entry.file_name); names != others_.end())
      for (const std::string& name : names->second)
        if (const NamedTensor* tensor = named(name)) found.push_back(tensor);
    return found;
  }

 private:
  const NamedTensor* named(std::string_view name) const {
    if (name.starts_with(left_out_)) name.remove_prefix(left_out_.size());
    const NamedTensor* found = weights_.find(prefix_ + std::string(name));
    for (const auto& [now, once] : names_once)
      if (!found && name.ends_with(now))
        found = weights_.find(prefix_ + std::string(name.substr(0, name.size() - now.size())) +
                              std::string(once));
    return found;
  }

  const Weights& weights_;
  std::string prefix_;                                      // of all of the file's names
  std::string left_out_;                                    // of those of the network
  std::map<std::string, std::vector<std::string>> others_;  // by the first name in files
};

bool counts_batches(const StateEntry& entry) {
  return entry.buffer && entry.spec->dtype == DType::i32 && entry.spec->name == "num_batches_tracked";
}

// Says whether a tensor is one that Hugging Face's modules keep, and old files of theirs have: a causal mask,
// what it puts in the place of hidden scores, the frequencies of rotary positions, or the positions.
bool is_computed(const NamedTensor& tensor) {
  const auto is = [&](std::string_view ending, size_t rank) {
    return tensor.name.ends_with(ending) && tensor.shape.size() == rank;
  };
  return is(".attn.bias", 4) || is(".attn.masked_bias", 0) || is(".rotary_emb.inv_freq", 1) ||
         is(".position_ids", 2);
}

// Returns "'a'" or "'a' and 2 more WHAT".
std::string and_more(const std::vector<std::string>& names, const std::string& what) {
  return names.size() == 1 ? fmt::format("'{}'", names[0])
                           : fmt::format("'{}' and {} more{}", names[0], names.size() - 1, what);
}

}  // namespace

Fitted fit(const Graph& graph, const Weights& weights, Fit how, const std::string& origin) {
  Fitted fitted;
  std::set<const NamedTensor*> known;
  const std::vector<StateEntry> entries = state_entries(graph);
  const ByEntry file(entries, weights, other_names(graph));
  std::vector<std::string> counts, computed;
  for (const StateEntry& entry : entries) {
    const NamedTensor* tensor = file.find(entry);
    if (!tensor && counts_batches(entry)) {
      counts.push_back(entry.file_name);
      continue;
    }
    known.insert(tensor);
    std::string why =
        tensor ? objection(*entry.spec, *tensor) : fmt::format("'{}' is not in the file", entry.file_name);
    for (const NamedTensor* other : file.by_other_names(entry)) {
      known.insert(other);
      if (other->values != tensor->values)
        why = fmt::format("'{}' has other numbers than '{}', but they are one parameter", other->name,
                          tensor->name);
    }
    if (why.empty())
      fitted.entries.push_back(entry), fitted.tensors.push_back(tensor);
    else
      fitted.skipped.push_back(why);
  }
  for (const NamedTensor& tensor : weights)
    if (!known.contains(&tensor) && is_computed(tensor))
      computed.push_back(tensor.name);
    else if (!known.contains(&tensor))
      fitted.skipped.push_back(fmt::format("'{}' is not in the network", tensor.name));

  const bool fits = fitted.skipped.empty() || (how == Fit::partial && !fitted.entries.empty());
  if (fits && !counts.empty())
    fitted.skipped.push_back(
        counts.size() == 1 ? fmt::format("'{}' is not in the file, and counts from 0", counts[0])
                           : and_more(counts, " counts of batches") + " are not in the file, and begin at 0");
  if (fits && !computed.empty())
    fitted.skipped.push_back(and_more(computed, "") +
                             " in the file: masks or positions, which the network computes");
  if (fits) return fitted;
  const size_t others = fitted.skipped.size() - 1;
  throw Error(fmt::format("{} does not fit {}: {}{}", origin, graph.model(), fitted.skipped[0],
                          others == 0 ? "" : fmt::format(", and {} more", others)),
              how == Fit::partial
                  ? "no tensor fits; is it a file of another network?"
                  : "choose the model it was made for, and its form, classes, sequence and "
                    "vocabulary; train and export can start from what fits, by --init-partial");
}

Weights complete(const Graph& graph, const Fitted& fitted, uint64_t seed, const std::string& origin) {
  std::map<std::string, const NamedTensor*> given;
  for (size_t i = 0; i < fitted.entries.size(); ++i) given[fitted.entries[i].name] = fitted.tensors[i];
  Weights all;
  for (const StateEntry& entry : state_entries(graph)) {
    const Tensor plain = drawn(entry, seed);
    if (const auto found = given.find(entry.name); found != given.end())
      from_named(*found->second, plain, origin);
    all.add(to_named(entry.file_name, plain));
  }
  return all;
}

}  // namespace antichain

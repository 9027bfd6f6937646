#include "pipeline/stage/stage_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "framework/files/checkpoint_folder.h"
#include "framework/files/hdf5.h"
#include "framework/files/state_dict.h"
#include "framework/files/weights.h"

namespace antichain {
namespace {

std::string path_of(const std::string& group, const std::string& name) {
  return group.empty() ? name : group + "/" + name;
}

// Returns the uses that have older weights of their own: the first, or all. The first is of the earliest
// stage, so no other one has more.
std::vector<ParamUse> uses(const Graph& graph, const StateEntry& e, bool all) {
  const auto shared = graph.shared().find(e.name);
  return all && !e.buffer && shared != graph.shared().end()
             ? std::vector<ParamUse>(shared->second.begin(), shared->second.end())
             : std::vector<ParamUse>{{e.node, e.index}};
}

// Names the group of the weights of so many updates ago, or of what was predicted of them.
constexpr std::string_view behind_group = "behind-", predicted_group = "predicted-";
std::string version(bool predicted, size_t updates) {
  return fmt::format("{}{}", predicted ? predicted_group : behind_group, updates);
}
bool is_version(std::string_view path) {
  return path.starts_with(behind_group) || path.starts_with(predicted_group);
}

struct Entry {
  std::string name, group;  // the slot's name, that of an older version, else ""
  const ParamSpec* spec = nullptr;
  Tensor value;             // the stage's own
  ParamUse use;             // of a parameter, where it is
  TensorSpec lies;          // how the whole lies in memory
  ByteRange own;            // the part of it that `value` is
  bool shared_out = false;  // among replicas
  std::string path() const { return path_of(group, name); }
};

// Calls visit(entry, slot's name or "", its index) for each tensor of the network's state: the entry itself
// and, of a parameter, its slots.
template <class Visit>
void for_each_tensor(const Graph& graph, const Optimiser& optimiser, const Visit& visit) {
  for (const StateEntry& entry : state_entries(graph)) {
    visit(entry, std::string(), size_t(0));
    if (entry.buffer) continue;
    const std::vector<std::string> slots = slots_of(optimiser, *entry.spec);
    for (size_t slot = 0; slot < slots.size(); ++slot) visit(entry, slots[slot], slot);
  }
}

// Returns what the stage has: for a file, each shared parameter where the rank has its first use; with
// `copies` also where it has other uses of it.
std::vector<Entry> entries(const RankModel& model, bool copies) {
  std::vector<Entry> all;
  const auto visit = [&](const StateEntry& e, const std::string& group, size_t slot) {
    ParamUse at{e.node, e.index};
    if (copies && !e.buffer) at = model.use_of(at).value_or(at);
    if (!model.owns(at.node)) return;
    const NodeState& state = model[at.node];
    const auto i = size_t(at.param);
    const Tensor& lies = (e.buffer ? state.buffers : state.params)[i];
    const bool is_slot = !group.empty();
    const ByteRange own = is_slot ? model.own_part(at) : ByteRange{0, lies.bytes()};
    const Tensor value = !is_slot ? lies : own.bytes == 0 ? Tensor() : state.slots[i][slot];
    all.push_back({e.name, group, e.spec, value, at, lies.spec(), own, is_slot && !state.shares[i].empty()});
  };
  for_each_tensor(model.graph(), model.optimiser(), visit);
  for (const StateEntry& e : state_entries(model.graph()))
    for (const ParamUse& at : uses(model.graph(), e, copies)) {
      if (!model.owns(at.node)) continue;
      const NodeState& state = model[at.node];
      const auto add = [&](const NodeWeights& of, size_t updates) {
        const Tensor& value = (e.buffer ? of.buffers : of.params)[size_t(at.param)];
        all.push_back({e.name,
                       version(state.ahead.has_value(), updates),
                       e.spec,
                       value,
                       at,
                       value.spec(),
                       {0, value.bytes()}});
      };
      if (state.ahead) add(*state.ahead, 0);
      for (size_t k = 0; k < state.older.size(); ++k) add(state.older[k], k + 1);
    }
  return all;
}

CheckpointTensor as_written(const std::string& path, const ParamSpec& spec) {
  if (spec.dtype == DType::i32) return {path, {}, false};  // a count: framework/files/state_dict.h
  return {path, {spec.shape.begin(), spec.shape.end()}, true};
}

std::string text(const CheckpointTensor& t) {
  return NamedTensor{"", t.shape, {}}.shape_text() + (t.is_float ? "" : ", int64");
}

// The file that has the tensor, of the shape it needs.
const CheckpointFile& file_with(const Manifest& manifest, const CheckpointTensor& wanted,
                                const std::string& checkpoint) {
  for (const CheckpointFile& file : manifest.files)
    for (const CheckpointTensor& tensor : file.tensors)
      if (tensor.path == wanted.path) {
        if (tensor == wanted) return file;
        throw Error(fmt::format("{}: '{}' is {}, but {} in the network", checkpoint, wanted.path,
                                text(tensor), text(wanted)),
                    "it is a checkpoint of another network");
      }
  throw Error(fmt::format("{} has no tensor '{}'", checkpoint, wanted.path),
              is_version(wanted.path)
                  ? "its run had other delays: resume with its --schedule and --predict, and with its cut by "
                    "--plan"
                  : "it is a checkpoint of another network");
}

// A run with smaller delays would go on with other weights than the checkpoint's.
void check_versions(const RankModel& model, const Manifest& manifest, const std::string& checkpoint) {
  std::set<std::string> there;
  for (const CheckpointFile& file : manifest.files)
    for (const CheckpointTensor& tensor : file.tensors)
      if (is_version(tensor.path)) there.insert(tensor.path);
  for (const StateEntry& e : state_entries(model.graph())) {
    if (!model.owns(e.node)) continue;
    const NodeState& state = model[e.node];
    for (const bool predicted : {false, true}) {
      const bool has = predicted == state.ahead.has_value();
      const std::string next = path_of(version(predicted, has ? state.older.size() + 1 : !predicted), e.name);
      if (there.contains(next))
        throw Error(fmt::format("{} has '{}', weights that this run does not train with", checkpoint, next),
                    "resume with the --schedule, the --predict and the cut of its run", ExitCode::usage);
    }
  }
}

// Memory for one tensor after the other, as much as the largest needs.
class Scratch {
 public:
  Tensor tensor(const TensorSpec& spec) {
    if (spec.bytes() > bytes_) memory_ = allocate_host(bytes_ = spec.bytes());
    return {spec, memory_};
  }

 private:
  std::shared_ptr<std::byte> memory_;
  int64_t bytes_ = 0;
};

void set(const Entry& entry, const NamedTensor& tensor, const Context& context, const std::string& origin) {
  const Tensor plain = Tensor::host({entry.spec->shape, entry.spec->dtype});
  from_named(tensor, plain, origin);
  const Tensor host = Tensor::host(entry.lies);
  relayout(plain, host);
  context.backend().copy(context, RankModel::part(host, entry.own), entry.value);
}

}  // namespace

std::vector<CheckpointTensor> checkpoint_tensors(const Graph& graph, const Optimiser& optimiser) {
  std::vector<CheckpointTensor> all;
  for_each_tensor(graph, optimiser, [&](const StateEntry& e, const std::string& group, size_t) {
    all.push_back(as_written(path_of(group, e.name), *e.spec));
  });
  return all;
}

void give_slots(const RankModel& model, const GatherSlot& gather) {
  for (const Entry& entry : entries(model, false))
    if (entry.shared_out) gather(entry.use, entry.value, {});
}

void StateCopy::take(RankModel& model, bool alias, const GatherSlot& gather) {
  const std::vector<Entry> now = entries(model, false);
  if (items_.empty())
    for (const Entry& e : now)
      items_.push_back(
          {as_written(e.path(), *e.spec), e.name, e.group, {e.spec->shape, e.spec->dtype}, {}, {}});
  for (size_t i = 0; i < now.size(); ++i) {
    Item& item = items_[i];
    const Entry& entry = now[i];
    const bool copies = !alias || entry.shared_out;
    if (copies && !item.copy) item.copy = Tensor::host(entry.lies);
    if (copies && entry.value)
      model.context().backend().copy(model.context(), entry.value, RankModel::part(item.copy, entry.own));
    if (entry.shared_out) gather(entry.use, entry.value, item.copy);
    item.value = copies ? item.copy : entry.value;
  }
}

std::vector<CheckpointTensor> StateCopy::tensors() const {
  std::vector<CheckpointTensor> all;
  for (const Item& item : items_) all.push_back(item.tensor);
  return all;
}

void StateCopy::write_hdf5(const Context& context, const std::function<void(std::string_view)>& sink) const {
  Scratch host_memory, plain_memory;
  const auto plain = [&](const Item& item) {
    Tensor host = item.value;
    const bool ours = item.copy && host.raw() == item.copy.raw();
    if (!ours && !context.backend().host_memory()) {  // the stage's own, out of the host's reach
      host = host_memory.tensor(item.value.spec());
      context.backend().copy(context, item.value, host);
    }
    if (host.layout() == Layout::plain) return host;
    const Tensor there = plain_memory.tensor(item.plain);
    relayout(host, there);
    return there;
  };
  std::vector<Hdf5Item> all;
  for (const Item& item : items_) {
    all.push_back({item.name, item.group, item.tensor.shape, {}});
    if (!item.tensor.is_float) all.back().count = *plain(item).data<int32_t>();
  }
  antichain::write_hdf5(
      all, [&](size_t i) { return plain(items_[i]).data<float>(); }, sink);
}

StateBytes state_bytes(const RankModel& model) {
  StateBytes bytes;
  for (const Entry& entry : entries(model, false)) {
    bytes.all += entry.lies.bytes();
    bytes.largest = std::max(bytes.largest, entry.lies.bytes());
  }
  return bytes;
}

void restore(RankModel& model, const std::string& checkpoint, const Manifest& manifest) {
  check_versions(model, manifest, checkpoint);
  std::map<const CheckpointFile*, std::vector<Entry>> wanted;
  for (const CheckpointFile& file : manifest.files) wanted[&file];
  for (const Entry& entry : entries(model, true))
    if (entry.value)
      wanted[&file_with(manifest, as_written(entry.path(), *entry.spec), checkpoint)].push_back(entry);
  for (const auto& [file, in_file] : wanted) {
    if (in_file.empty()) continue;
    const std::string origin = checkpoint + "/" + file->name;
    std::vector<std::string> paths;
    for (const Entry& entry : in_file) paths.push_back(entry.path());
    const auto tensors = read_hdf5(read_checkpoint_file(checkpoint, *file), paths, origin);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (const std::string bad = describe_bad_number(tensors[i]); !bad.empty())
        throw Error(fmt::format("{}: {}, with which no training can go on", origin, bad),
                    "resume from an older checkpoint", ExitCode::not_a_number);
      set(in_file[i], tensors[i], model.context(), origin);
    }
  }
  model.prepare();
}

}  // namespace antichain

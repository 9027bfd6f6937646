#include "pipeline/train/weights_io.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/bounded_file.h"
#include "framework/files/safetensors.h"
#include "framework/files/weights.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

Tensor to_host(const Tensor& value, const StateEntry& entry, const Context& context) {
  const Tensor host = Tensor::host(value.spec());
  context.backend().copy(context, value, host);
  const Tensor plain = Tensor::host({entry.spec->shape, entry.spec->dtype});
  relayout(host, plain);
  return plain;
}

void to_device(const Tensor& plain, const Tensor& value, const Context& context) {
  const Tensor host = Tensor::host(value.spec());
  relayout(plain, host);
  context.backend().copy(context, host, value);
}

// The stage's own entries, and for each the tensor that `choose` picks; those without one are left out.
template <class Choose>
Weights collect(RankModel& model, const Choose& choose) {
  Weights weights;
  for (const StateEntry& entry : state_entries(model.graph()))
    if (model.owns(entry.node))
      if (const Tensor value = choose(model[entry.node], entry))
        weights.add(to_named(entry.file_name, to_host(value, entry, model.context())));
  return weights;
}

const Tensor& value_of(const NodeState& state, const StateEntry& entry) {
  return (entry.buffer ? state.buffers : state.params)[size_t(entry.index)];
}

NamedTensor copy_of(RankModel& model, const StateEntry& entry) {
  return to_named(entry.file_name, to_host(value_of(model[entry.node], entry), entry, model.context()));
}

}  // namespace

Weights broadcast_weights(const std::string& file, const Graph& network, Job& job) {
  const auto bytes = [&] {
    return are_several_files(file) ? encode(read_weights(file), WeightFormat::safetensors)
                                   : read_bounded(file, most_weights_bytes);
  };
  return decode(on_rank_zero(job, bytes), file, file_bytes(network));
}

void check_numbers(const Fitted& fitted, const Weights& weights, const std::string& origin) {
  std::vector<std::string> names;
  for (size_t i = 0; i < fitted.tensors.size(); ++i)
    if (!fitted.entries[i].kept) names.push_back(fitted.tensors[i]->name);
  check_numbers(weights, names, origin);
}

std::vector<std::string> load_weights(RankModel& model, const Weights& weights, Fit how,
                                      const std::string& origin) {
  const Fitted fitted = fit(model.graph(), weights, how, origin);
  check_numbers(fitted, weights, origin);
  for (size_t i = 0; i < fitted.entries.size(); ++i) {
    const StateEntry& entry = fitted.entries[i];
    const Tensor plain = Tensor::host({entry.spec->shape, entry.spec->dtype});
    from_named(*fitted.tensors[i], plain, origin);  // of other stages, too: the same Error everywhere
    const ParamUse own{entry.node, entry.index};
    const ParamUse at = entry.buffer ? own : model.use_of(own).value_or(own);
    if (!model.owns(at.node)) continue;
    const NodeState& state = model[at.node];
    to_device(plain, (entry.buffer ? state.buffers : state.params)[size_t(at.param)], model.context());
  }
  model.begin_run();
  model.prepare();
  return fitted.skipped;
}

Weights weights_of(RankModel& model) { return collect(model, value_of); }

Weights gradients_of(RankModel& model) {
  return collect(model, [&](const NodeState&, const StateEntry& entry) {
    if (entry.buffer) return Tensor();
    const ParamUse at =
        *model.use_of({entry.node, entry.index});  // where a shared weight's gradient is whole
    return model[at.node].gradients[size_t(at.param)];
  });
}

std::string first_bad_number(RankModel& model, Job& job) {
  const std::vector<StateEntry> entries = state_entries(model.graph());
  std::string text;
  for (size_t place = 0; place < entries.size() && text.empty(); ++place)
    if (model.owns(entries[place].node) && !entries[place].kept)
      if (const std::string bad = describe_bad_number(copy_of(model, entries[place])); !bad.empty())
        text = fmt::format("{:012}{}", place, bad);
  std::string first;
  for (const std::string& other : job.gather(text))
    if (!other.empty() && (first.empty() || other < first)) first = other;
  first = job.broadcast(first);
  return first.empty() ? "" : first.substr(12);
}

// One tensor after the other, so that a rank has a copy of one at a time, and rank 0 of all.
Weights gather_weights(RankModel& model, Job& job) {
  Weights all;
  for (const StateEntry& entry : state_entries(model.graph())) {
    std::string mine;
    if (model.owns(entry.node)) {
      Weights one;
      one.add(copy_of(model, entry));
      mine = to_safetensors(one);
    }
    const std::vector<std::string> parts = job.gather(mine);  // replicas have the same
    if (const auto part = std::ranges::find_if(parts, [](const std::string& p) { return !p.empty(); });
        part != parts.end())
      all.add(from_safetensors(*part, entry.name)[0]);
  }
  return all;
}

}  // namespace antichain

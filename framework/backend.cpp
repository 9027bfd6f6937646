#include "framework/backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/averaged.h"
#include "framework/computed.h"
#include "framework/error.h"
#include "framework/grouped.h"
#include "framework/module.h"

namespace antichain {
namespace {

std::map<std::string, std::unique_ptr<Backend>, std::less<>>& registry() {
  static std::map<std::string, std::unique_ptr<Backend>, std::less<>> backends;
  return backends;
}

// What an engine's table has entries for, in the words of its errors.
struct Kind {
  const char *entry, *an_entry, *of, *key;
};
constexpr Kind kernel = {"kernel", "a kernel", "operator", "type"};
constexpr Kind update = {"update", "an update", "optimiser", "name"};

// These are entries from outside, by device and by operator type or optimiser.
template <class Entry>
std::map<std::pair<std::string, std::string>, Entry>& own_entries() {
  static std::map<std::pair<std::string, std::string>, Entry> entries;
  return entries;
}

template <class Entry>
void register_own(const Kind& kind, const std::string& device, const std::string& key, Entry entry) {
  if (!own_entries<Entry>().try_emplace({device, key}, std::move(entry)).second)
    throw Error(
        fmt::format("{} of {} '{}' for device '{}' is registered twice", kind.an_entry, kind.of, key, device),
        fmt::format("give each {} a {} of its own", kind.of, kind.key), ExitCode::usage);
}

template <class Entry>
const Entry& find_entry(const Kind& kind, const std::map<std::string, Entry, std::less<>>& table,
                        const std::string& device, std::string_view key) {
  const auto shipped = table.find(key);
  const auto own = own_entries<Entry>().find({device, std::string(key)});
  const bool is_own = own != own_entries<Entry>().end();
  if (shipped != table.end() && is_own)
    throw Error(fmt::format("device '{}' has {} of its own for {} '{}', and another was registered", device,
                            kind.an_entry, kind.of, key),
                fmt::format("give the {} from outside another {}", kind.of, kind.key), ExitCode::usage);
  if (shipped != table.end()) return shipped->second;
  if (is_own) return own->second;
  std::vector<std::string_view> known;
  for (const auto& [name, entry] : table) known.push_back(name);
  throw Error(fmt::format("device '{}' has no {} for {} '{}'", device, kind.entry, kind.of, key),
              known.empty() ? "it has none at all; use --device cpu"
                            : fmt::format("it has {}", fmt::join(known, ", ")));
}

// Runs updates one after the other, each with its multiple of the rate.
class InTurn : public Update {
 public:
  void then(std::unique_ptr<Update> update, float rate_factor = 1) {
    all_.emplace_back(std::move(update), rate_factor);
  }
  void run(Context& context, const Rate& rate) const override {
    for (const auto& [update, factor] : all_) update->run(context, rate.times(factor));
  }

 private:
  std::vector<std::pair<std::unique_ptr<Update>, float>> all_;
};

// The average has the last slot of each parameter, and the optimiser the others.
std::unique_ptr<Update> make_in_turn(const Backend& backend, const Averaged& both, const Context& context,
                                     std::vector<Trained> trained) {
  std::vector<Trained> followed = trained;
  for (size_t i = 0; i < trained.size(); ++i) {
    followed[i].slots = {trained[i].slots.back()};
    followed[i].rounded = {};
    trained[i].slots.pop_back();
  }
  auto both_in_turn = std::make_unique<InTurn>();
  both_in_turn->then(backend.make_update(both.of, context, std::move(trained)));
  both_in_turn->then(backend.make_update(both.average, context, std::move(followed)));
  return both_in_turn;
}

std::unique_ptr<Update> make_by_groups(const Backend& backend, const Grouped& of, const Context& context,
                                       const std::vector<Trained>& trained) {
  auto all = std::make_unique<InTurn>();
  for (size_t g = 0; g < of.groups.size(); ++g) {
    std::vector<Trained> own;
    for (const Trained& t : trained)
      if (of.group_of(t.name) == g) own.push_back(t);
    if (own.empty()) continue;
    all->then(backend.make_update(of.groups[g].optimiser, context, std::move(own)), of.groups[g].rate_factor);
  }
  return all;
}

}  // namespace

void register_kernel(const std::string& device, const std::string& op_type, KernelEntry entry) {
  register_own(kernel, device, op_type, std::move(entry));
}

void register_update(const std::string& device, const std::string& optimiser, MakeUpdate make) {
  register_own(update, device, optimiser, std::move(make));
}

const KernelEntry& Backend::entry(std::string_view op_type) const {
  return find_entry(kernel, kernels_, name(), op_type);
}

std::unique_ptr<Update> Backend::make_update(std::shared_ptr<const Optimiser> optimiser,
                                             const Context& context, std::vector<Trained> trained) const {
  if (const Averaged* both = averaged(*optimiser))
    return make_in_turn(*this, *both, context, std::move(trained));
  if (const Grouped* of = grouped(*optimiser)) return make_by_groups(*this, *of, context, trained);
  const MakeUpdate& make = find_entry(update, updates_, name(), optimiser->name());
  return make(std::move(optimiser), context, std::move(trained));
}

void Backend::require(Precision precision) const {
  if (precision == Precision::float32) return;
  throw Error(fmt::format("device '{}' does not compute in {}", name(), name_of(precision)),
              "use --precision float32", ExitCode::usage);
}

void register_backend(std::unique_ptr<Backend> b) {
  const std::string name = b->name();
  const auto [at, is_new] = registry().try_emplace(name, std::move(b));
  if (is_new) register_kernel(name, std::string(Computed::type_name), computed_entry(*at->second));
}

const Backend& backend(std::string_view name) {
  if (auto it = registry().find(name); it != registry().end()) return *it->second;
  std::string reason;
  if (const EngineModule* module = module_of(name)) {
    reason = load_module(module->library);
    if (reason.empty())
      if (auto it = registry().find(name); it != registry().end()) return *it->second;
    if (!reason.empty()) reason = ": " + reason;
  }
  throw Error(fmt::format("there is no device '{}'{}", name, reason),
              fmt::format("use one of: {}", fmt::join(backend_names(), ", ")), ExitCode::usage);
}

std::string best_backend(std::string& why_not_faster) {
  std::vector<std::string> reasons;
  for (const EngineModule& module : engine_modules()) {
    if (registry().contains(module.device)) return module.device;
    const std::string reason = load_module(module.library);
    if (reason.empty()) return module.device;
    reasons.push_back(reason);
  }
  why_not_faster = fmt::format("{}", fmt::join(reasons, "; "));
  return "cpu";
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& [name, b] : registry()) names.push_back(name);
  return names;
}

}  // namespace antichain

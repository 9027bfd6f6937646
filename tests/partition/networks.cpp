#include "tests/partition/networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

namespace antichain::test {

int compute_nodes(const Profile& profile) {
  return int(std::count_if(profile.nodes.begin(), profile.nodes.end(),
                           [](const ProfileNode& node) { return node.role != Role::input; }));
}

int add(Profile& profile, std::vector<int> inputs, int64_t forward_ns, int64_t backward_ns, int64_t bytes) {
  ProfileNode node;
  node.name = fmt::format("n{}", profile.nodes.size());
  node.op = "work";
  node.inputs = std::move(inputs);
  node.needs_gradient = true;
  node.cost.forward_s = double(forward_ns) * 1e-9;
  node.cost.backward_input_s = double(backward_ns) * 1e-9;
  node.cost.output_bytes = bytes;
  node.cost.flops = double(forward_ns);
  profile.nodes.push_back(std::move(node));
  return int(profile.nodes.size()) - 1;
}

int add_input(Profile& profile) {
  int id = add(profile, {}, 0, 0);
  profile.nodes[id].role = Role::input;
  profile.nodes[id].needs_gradient = false;
  return id;
}

Profile chain(int nodes) {
  Profile profile;
  profile.model = "chain";
  int last = add_input(profile);
  for (int i = 0; i < nodes; ++i) last = add(profile, {last});
  return profile;
}

Profile parallel_chains(int chains, int length) {
  Profile profile;
  profile.model = "chains";
  std::vector<int> last(chains, -1);
  for (int i = 0; i < length; ++i)
    for (int& node : last) node = add(profile, node < 0 ? std::vector<int>{} : std::vector<int>{node});
  return profile;
}

Profile residual_blocks(int blocks) {
  Profile profile;
  profile.model = "residual";
  int x = add(profile, {});
  for (int i = 0; i < blocks; ++i) {
    int a = add(profile, {x}, 1000 + i % 7);
    int b = add(profile, {a}, 1500 + i % 3);
    x = add(profile, {b, x}, 100);
  }
  return profile;
}

Profile nasnet_like(int cells, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](int n) { return int(random() % uint64_t(n)); };
  Profile profile;
  profile.model = "nasnet-like";
  int before = add(profile, {add_input(profile)}, 500'000, 900'000, 4'000'000), last = before;
  for (int cell = 0; cell < cells; ++cell) {
    std::vector<int> joined;
    for (int pair = 0; pair < 5; ++pair) {
      std::vector<int> both;
      for (int branch = 0; branch < 2; ++branch) {
        int x = below(3) ? last : before;
        for (int i = 1 + below(8); i > 0; --i)
          x = add(profile, {x}, 20'000 + below(400'000), 40'000 + below(800'000), 100'000 + below(3'000'000));
        both.push_back(x);
      }
      joined.push_back(add(profile, both, 10'000 + below(20'000), 10'000, 1'000'000));
    }
    before = last;
    last = add(profile, joined, 50'000, 50'000, 5'000'000);
  }
  return profile;
}

Profile random_network(uint64_t seed, int max_nodes) {
  // Its sequence is fixed by the standard; distributions are not, hence the modulo.
  std::mt19937_64 random(seed);
  auto below = [&](int n) { return int(random() % uint64_t(n)); };
  Profile profile;
  profile.model = "random";
  int compute = 1 + below(max_nodes), scale = 1 + below(20), density = 1 + below(4);
  for (int made = 0; made < compute;) {
    if (below(6) == 0) {
      add_input(profile);
      continue;
    }
    std::vector<int> inputs;
    for (int u = 0; u < int(profile.nodes.size()); ++u)
      if (below(int(profile.nodes.size()) + 3) < density) inputs.push_back(u);
    if (!inputs.empty() && below(10) == 0) inputs.push_back(inputs[0]);  // one tensor used twice by one node
    add(profile, inputs, below(scale), below(2 * scale), below(3 * scale));
    ++made;
  }
  if (below(2)) profile.nodes.back().role = Role::loss;
  return profile;
}

std::vector<Mask> down_sets(const Profile& profile) {
  Mask all = 0;
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    if (profile.nodes[n].role != Role::input) all |= Mask(1) << n;
  const auto closed = [&](Mask set) {
    for (size_t n = 0; n < profile.nodes.size(); ++n)
      for (int u : profile.nodes[n].inputs)
        if ((set >> n & 1) && (all >> u & 1) && !(set >> u & 1)) return false;
    return true;
  };
  std::vector<Mask> sets;
  for (Mask set = all;; set = (set - 1) & all) {
    if (closed(set)) sets.push_back(set);
    if (set == 0) break;
  }
  std::reverse(sets.begin(), sets.end());
  return sets;
}

}  // namespace antichain::test

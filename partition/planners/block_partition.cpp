#include "partition/planners/block_partition.h"

#include <algorithm>
#include <cstdlib>

#include "framework/error.h"

namespace antichain {
namespace {

class Blocks {
 public:
  // It starts from equal counts, as torchgpipe does.
  Blocks(const std::vector<int64_t>& elements, int blocks)
      : elements_(elements), ends_(blocks), sums_(blocks) {
    largest_ = *std::max_element(elements.begin(), elements.end());
    for (int b = 0, i = 0; b < blocks; ++b) {
      ends_[b] = int(int64_t(elements.size()) * (b + 1) / blocks);
      for (; i < ends_[b]; ++i) sums_[b] += elements[i];
    }
  }

  // "(1) Fix p with M(P) = b_p. (2) If M(P) ≤ m(P) + 1, then stop. (3) Otherwise let m(P) = b_q for the q
  // which is closest to p, and let B_h be the block next to B_q between B_p and B_q": B_q gets B_h's nearest
  // element, "and if p = h, then go to (1), else go to (2)". The paper's 1 is the largest element.
  //
  // No block stays empty: when B_h lost its only element, it is the minimal block nearest to p and next to be
  // given one; and B_p has more than one as long as it is larger than any.
  void settle() {
    for (int p = maximal();;) {
      const int q = minimal_nearest(p);
      if (sums_[p] <= sums_[q] + largest_) return;
      const int h = p < q ? q - 1 : q + 1;
      move_one(h, q);
      if (h == p) p = maximal();
    }
  }

  const std::vector<int>& ends() const { return ends_; }

 private:
  int maximal() const { return int(std::max_element(sums_.begin(), sums_.end()) - sums_.begin()); }

  // It takes the earlier of two equally near ones.
  int minimal_nearest(int p) const {
    int q = int(std::min_element(sums_.begin(), sums_.end()) - sums_.begin());
    for (int b = q; b < int(sums_.size()); ++b)
      if (sums_[b] == sums_[q] && std::abs(b - p) < std::abs(q - p)) q = b;
    return q;
  }

  void move_one(int from, int to) {
    const int element = from < to ? --ends_[from] : ends_[to]++;
    sums_[from] -= elements_[element];
    sums_[to] += elements_[element];
  }

  const std::vector<int64_t>& elements_;
  std::vector<int> ends_;
  std::vector<int64_t> sums_;
  int64_t largest_;
};

}  // namespace

std::vector<int> block_partition(const std::vector<int64_t>& elements, int blocks) {
  ANTICHAIN_CHECK(1 <= blocks && blocks <= int(elements.size()), "every block needs an element");
  Blocks partition(elements, blocks);
  partition.settle();
  return partition.ends();
}

}  // namespace antichain

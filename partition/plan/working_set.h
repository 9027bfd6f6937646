// This file has the formula for what a stage keeps and computes again, given which of its nodes it recomputes
// (recompute.h). docs/planning.md says it in words.
//
//   kept     of each other node what its backward needs, and each tensor that recomputed nodes begin from: an
//            output of another node or of another stage, or an input
//   again    the largest working set of the backward while anything is there that was computed again. It is
//            looked at twice at each node: while its backward runs, with the gradients in flight and what is
//            there; and, where a segment is computed again, before that, with the gradients that have come so
//            far, what is there, and what computing the segment takes beyond what it leaves
//
// A segment is there from the first backward that reads any of it until its own first node's, and leaves what
// its nodes would have kept. Its own last node and the nodes of the stage that read it count as places where
// it is computed. Where one segment reads another, both are there together.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/profile/profile.h"

namespace antichain {

// A StageOrder has the nodes of a stage by position, in the order of their forwards. Tensors are the stage's
// outputs, numbered as its nodes are, and behind them the tensors of others that the stage reads.
struct StageOrder {
  // `consumers` is profile.consumers(); nodes ascend.
  StageOrder(const Profile&, const std::vector<std::vector<int>>& consumers, const std::vector<int>& nodes);

  struct Place {
    double forward_s = 0;
    int64_t kept_bytes = 0;     // what its backward needs, where it is not recomputed
    bool computes = false;      // and may be recomputed
    bool has_backward = false;  // so it reads tensors again
    // Gradients in flight while its backward runs, and before: its output's, and those of earlier tensors
    // that it or later nodes read, or other stages.
    int64_t gradient_bytes = 0, come_bytes = 0;
    std::vector<int> inputs = {};  // tensors, without repeats
  };
  struct Read {
    int64_t bytes = 0;
    bool reread = false;  // by some backward
    int readers = 0;      // of the stage, and the last of them
    int last_reader = -1;
    bool overwritten = false;  // by that one (framework/in_place.h), which is the only one
    bool there(int place) const { return last_reader > place || (last_reader == place && !overwritten); }
  };
  std::vector<Place> places;
  std::vector<Read> tensors;
  int size() const { return int(places.size()); }
};

struct WorkingSet {
  double forward_s = 0;  // of what is computed again
  int64_t kept_bytes = 0, again_bytes = 0;
};
// Bytes are those of one micro-batch. `again` says by position what is recomputed.
WorkingSet working_set(const StageOrder&, const std::vector<bool>& again);

}  // namespace antichain

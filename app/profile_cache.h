// Profiles that were measured before, in a folder: one file for each set of what times depend on. A file is a profile like any
// other, for --profile; its link is that of the job that measured it, so a job that finds it measures its own.
#pragma once

#include <optional>
#include <string>

#include "framework/context.h"
#include "framework/graph.h"
#include "partition/profile.h"

namespace antichain {

// What the times of a network's nodes depend on.
struct ProfileSubject {
  std::string model, graph_hash;  // which knows sizes, precision, layouts
  std::string device;             // with its libraries' versions
  std::string program;            // our own version and revision
  int microbatch = 0;             // samples
  int microbatches = 0;           // in a step that was measured
  int threads = 1, ranks_at_once = 1;
};
ProfileSubject profile_subject(const Graph& lowered, const Context&, int microbatches, int ranks_at_once);

class ProfileCache {
 public:
  // A folder, or "none"; "auto" is `antichain` in the user's folder for such things where the device has memory of its own, and
  // none on CPUs, whose times depend on what else their host does.
  ProfileCache(const std::string& option, const Context&);

  bool off() const { return folder_.empty(); }
  std::string file(const ProfileSubject&) const;
  // Nothing where there is none, or one that says itself that it is of something else. One that can't be read is an Error.
  std::optional<Profile> find(const ProfileSubject&) const;
  void keep(const ProfileSubject&, const Profile&) const;

 private:
  std::string folder_;  // "": off
};

}  // namespace antichain

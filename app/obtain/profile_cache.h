// A ProfileCache is a folder of profiles that were measured before: one file for each combination of
// everything that times depend on. A file is a profile like any other, for --profile. Its link is that of the
// job that measured it, so a job that finds it measures its own link. A host's other load is not in the key.
// So profiles that were measured while ranks lacked cores are not kept (app/obtain/profile.h).
#pragma once

#include <optional>
#include <string>

#include "framework/context.h"
#include "framework/graph.h"
#include "partition/profile/profile.h"

namespace antichain {

// A ProfileSubject has everything that the times of a network's nodes depend on.
struct ProfileSubject {
  std::string model, graph_hash;  // the hash covers sizes, precision, layouts
  std::string device;             // the processor's or GPU's name, with its libraries' versions
  std::string engine;             // what selects the device's kernels: instruction set, library, modes
  std::string optimiser;          // its name, and how many bytes it keeps
  std::string program;            // our own version and revision
  int microbatch = 0;             // samples
  int microbatches = 0;           // in a measured step
  int threads = 1, ranks_at_once = 1;
  int cores = 1, cores_of_host = 1;  // that the process may use; of the whole host
};
ProfileSubject profile_subject(const Graph& lowered, const Optimiser&, const Context&, int microbatches,
                               int ranks_at_once);

struct KeptProfile {
  Profile profile;
  double age_s = 0;
};
// Returns "40 s", "5 min", "3 h" or "2 days".
std::string age(double seconds);

// Returns whether times are good enough to be used again: ranks had their cores, and measuring took as long
// as usual.
bool worth_keeping(double starved_share, double measured_for_s, double usual_s);

class ProfileCache {
 public:
  // `option` is a folder or "none". "auto" reads the same from the environment's ANTICHAIN_PROFILE_CACHE, and
  // otherwise takes antichain/profiles in the user's cache folder.
  explicit ProfileCache(const std::string& option);

  bool off() const { return folder_.empty(); }
  std::string file(const ProfileSubject&) const;
  // Returns nothing where there is none. Throws Error where the file can't be read, or says that it is of
  // something else.
  std::optional<KeptProfile> find(const ProfileSubject&) const;
  void keep(const ProfileSubject&, const Profile&) const;

 private:
  std::string folder_;  // "": off
};

}  // namespace antichain

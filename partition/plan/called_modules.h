// The modules of PyTorch whose forward runs once while a model computes what a profile has.
//
// Profiles of antichain.profile_torch say which these are (Profile::called_once). Of any other profile they
// are read from the nodes' names, where these leave no doubt:
//
//   "conv1", with parameters     a module of that name has them
//   "features.2"                 no function has a number for a name
//   "layer1.0", of               the module's own code adds or joins tensors; a ModuleList or ModuleDict,
//   "layer1.0.add"               which is never called, computes nothing
//
// A number behind a name ("attn_1") tells nodes of one module apart, so such names leave a doubt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "partition/profile/profile.h"

namespace antichain {

struct CalledModule {
  std::string name;
  int first, last;  // of its nodes, as indices into the profile
};

// Leaves out modules without nodes. The nodes of one module are all computed nodes from its first to its
// last.
std::vector<CalledModule> called_modules(const Profile&);

// Returns whether a name is the module's or that of something in it.
bool lies_in(std::string_view name, std::string_view module);

// Returns a name without the number that tells it apart from others: of "attn_1", "attn".
std::string without_count(const std::string& name);

// Returns the path by which a node lies in modules: the recorded module's, else the node's name.
const std::string& path_of(const Profile&, int node);

}  // namespace antichain

// Finds a published data set: in the user's folder, otherwise in the cache, otherwise in the official archive
// over the network (within a time limit, checksum verified). For CIFAR-10 it otherwise generates a set in the
// same layout, which is labelled as generated everywhere.
//
// One process does this (rank 0); others read the folder it returns afterwards.
#pragma once

#include <string>
#include <vector>

#include "data/published_sets.h"
#include "data/synthetic.h"

namespace antichain {

struct ObtainOptions {
  std::string data_dir;   // the user's; "" falls back to the environment's CIFAR10_DIR, CIFAR100_DIR
  std::string cache_dir;  // "": $XDG_CACHE_HOME/antichain, else ~/.cache/antichain, else a folder in /tmp
  std::string url, md5;   // of the archive; "": the published ones
  int limit_s = 10;       // for the download
  SyntheticOptions synthetic;
};

struct Obtained {
  std::string directory;  // for read_cifar()
  std::string note;       // one line to tell the user, or ""
  bool instead = false;   // whether these are generated images in the place of CIFAR-10
};

// Returns the user's folder, else the one of the environment, else the cache's where it is there, else "".
std::string published_folder(const PublishedSet&, const ObtainOptions& options = {});
// Returns a user's folder as it is: reading it finds what is wrong with it. Throws Error when the cache can't
// be written, or when there is neither the set nor one that may take its place.
Obtained obtain_published(const PublishedSet&, const ObtainOptions& options = {});
// Returns the generated set, whatever other data exist.
Obtained obtain_synthetic(const ObtainOptions& options = {});

// Runs another program and waits for it. There is no shell between, so nothing needs quoting.
struct CommandResult {
  int status = 127;    // exit status; 127 when the program isn't there; 128 + n when signal n ended it
  std::string output;  // standard output
};

// Discards standard error.
CommandResult run_command(const std::vector<std::string>& words);

}  // namespace antichain

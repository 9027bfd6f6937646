// Removes checkpoints, and nothing that the program did not make. A folder is a checkpoint's by what is in
// it, not by its name alone. Links are never followed: one with a checkpoint's name is unlinked, and what it
// leads to stays.
#pragma once

#include <string>

namespace antichain {

// Returns what of a folder is no checkpoint's, such as "it holds notes.txt, which no checkpoint has", or "".
// It may be torn, and a `complete` one has a manifest, damaged or not.
std::string why_no_checkpoint(const std::string& path, bool complete);

// Removes a checkpoint or what is left of one, beginning with the manifest, so that a removal that is cut
// short leaves none. Throws nothing. Returns "" where nothing is there any more, or why it stays.
std::string remove_checkpoint(const std::string& path);

}  // namespace antichain

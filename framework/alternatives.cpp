#include "framework/alternatives.h"

#include <map>
#include <mutex>
#include <utility>

namespace antichain {
namespace {

struct Lists {
  std::mutex mutex;  // ranks may be threads
  std::map<std::string, ListAlternatives, std::less<>> by_backend;
};
Lists& lists() {
  static Lists of_process;
  return of_process;
}

}  // namespace

void register_alternatives(const std::string& backend, ListAlternatives list) {
  const std::lock_guard lock(lists().mutex);
  lists().by_backend.insert_or_assign(backend, std::move(list));
}

const ListAlternatives* alternatives_of(std::string_view backend) {
  const std::lock_guard lock(lists().mutex);
  const auto found = lists().by_backend.find(backend);
  return found == lists().by_backend.end() ? nullptr : &found->second;
}

}  // namespace antichain

#include "net/host_watch.hpp"

#include <utility>

#include "base/index.hpp"

namespace rondo::detail {

HostWatch::HostWatch(std::vector<ProcessName> processes) : processes_(std::move(processes)) {}

HostWatch::~HostWatch() {
  held_.clear();
  if (all_ != nullptr) all_->wake();
}

HostLinks& HostWatch::all() {
  if (all_ == nullptr) all_ = HostLinks::of_process();
  return *all_;
}

bool HostWatch::find_link(int member) {
  std::shared_ptr<HostLink> link = all().find(processes_[Index(member)]);
  if (link == nullptr) return false;
  held_.push_back(std::move(link));
  return true;
}

void HostWatch::add_link(int member, FileDescriptor socket) {
  held_.push_back(all().add(processes_[Index(member)], std::move(socket)));
}

std::vector<HostWatch::Gone> HostWatch::gone() const {
  std::vector<Gone> members;
  if (all_ == nullptr) return members;
  for (const GoneProcess& one : all_->gone()) {
    for (std::size_t member = 0; member < processes_.size(); ++member) {
      if (processes_[member] != one.process) continue;
      members.push_back({static_cast<int>(member), one.host_vanished, one.since});
    }
  }
  return members;
}

}  // namespace rondo::detail

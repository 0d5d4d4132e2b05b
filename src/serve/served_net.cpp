// The half of ServedModel that changes the network itself while it answers, and lets others see what is
// asked.
#include "serve/served_model.h"

namespace limber {

// -1: it is not among what is served.
int ServedModel::original_number() const {
  for (size_t i = 0; i < variants_.size(); ++i)
    if (variants_[i].name == "original") return static_cast<int>(i);
  return -1;
}

Status ServedModel::use_net(std::shared_ptr<const ServedNet> net) {
  if (net != nullptr) {
    LIMBER_ASSIGN(const ServedSignature signature, signature_of(net->graph));
    if (signature != signature_)
      return invalid("{}: network '{}' takes or gives something else than the model that is served",
                     source_.name, net->name);
  }
  const std::lock_guard lock(control_mutex_);
  if (original_number() < 0)
    return error(Code::kNotFound,
                 "{}: the original does not keep the limits, so nothing can answer in its place",
                 source_.name);
  if (net == nullptr) net = std::make_shared<const ServedNet>(ServedNet{"", source_.graph, weights_});
  net_to_use_ = std::move(net);
  deploying_.notify_all();
  return {};
}

// A plan that the graph has already is not made again: then this takes as long as laying out weights takes.
void ServedModel::change_net(std::unique_lock<std::mutex>& control) {
  const auto net = std::exchange(net_to_use_, nullptr);
  const int number = original_number();
  const auto like = find(*warm(), number);
  if (like == nullptr) {  // it is compiled when it is wanted
    net_ = net;
    return;
  }
  control.unlock();
  auto made = ReadyVariant::make(*net, "original", number, like.get(), backends_, options_.ready);
  control.lock();
  if (over_) return;
  if (!made.ok()) {
    problem_ = fmt::format("network '{}' cannot be used: {}", net->name, made.status().message());
    return;
  }
  net_ = net;
  const auto set = warm();
  auto variants = set->variants;
  std::replace(variants.begin(), variants.end(), like, *made);
  publish(std::move(variants), set->active == like ? *made : set->active);
  governor_->use(make_index(), governor_->active(), limits_);
}

void ServedModel::use_tap(std::shared_ptr<RequestTap> tap) {
  LIMBER_ASSERT(tap == nullptr || tap->row_floats() * sizeof(float) == signature_.inputs[0].type.bytes());
  const std::lock_guard lock(mutex_);
  tap_ = std::move(tap);
}

void ServedModel::tell_followed(std::shared_ptr<const Followed> followed) {
  const std::lock_guard lock(followed_mutex_);
  followed_ = std::move(followed);
}

std::shared_ptr<const Followed> ServedModel::followed() const {
  const std::lock_guard lock(followed_mutex_);
  return followed_;
}

void ServedModel::tell_scheduled(std::shared_ptr<const Scheduled> scheduled) {
  const std::lock_guard lock(followed_mutex_);
  scheduled_ = std::move(scheduled);
}

std::shared_ptr<const Scheduled> ServedModel::scheduled() const {
  const std::lock_guard lock(followed_mutex_);
  return scheduled_;
}

}  // namespace limber

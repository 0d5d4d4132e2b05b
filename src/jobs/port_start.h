// What a porting begins with: the model, images, and who makes it smaller.
#pragma once

#include <memory>

#include "jobs/elastic_work.h"
#include "jobs/port_job.h"
#include "porting/workshop.h"

namespace limber {

// Stays where it is made: the executor refers to the rest.
struct PortStart {
  Workshop shop;
  ModelCard card;  // for what is exported
  JudgedImages judged;
  std::unique_ptr<ElasticWork> work;  // by supernet
  std::unique_ptr<Executor> executor;
  std::string executor_name;
  std::string identity;  // of the model and of all that the outcome depends on beside a goal
  std::string doing;     // what the executor does at the moment, for whoever watches
  std::function<void()> on_doing;
};

// REQUIRES: check(options). `options` and `control` must outlive it.
Result<std::unique_ptr<PortStart>> start_porting(const PortJobOptions& options, const JobControl& control);

}  // namespace limber

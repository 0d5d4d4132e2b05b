// What the page about an elastic model shows.
#pragma once

#include <string>

#include "base/status.h"
#include "report/elastic_page.h"

namespace limber {

// From the folder's model, variant table and history.
Result<ElasticReport> read_elastic_report(const std::string& folder);

}  // namespace limber

#include "cli/elastic_arguments.h"

#include <array>

#include "cli/image_arguments.h"

namespace limber {

void add_image_source(Arguments& arguments, ImageSource& source, Arguments::Need data) {
  arguments.text("-d,--data", source.data, "DATA", "Images that variants are judged by", data);
  arguments.choice<Truth>("--labels", source.truth, {{"data", Truth::kData}, {"original", Truth::kOriginal}},
                          "What is right: what the data says (default), or what the original model says");
  arguments.choice<Split>(
      "--split", source.split, {{"train", Split::kTrain}, {"test", Split::kTest}},
      "Which part, where the data has parts; default test. Of data without parts, test is "
      "what elastify held out");
  arguments.number("--images", source.images, 1, 1000000, "How many of them; default 500");
  add_workers_argument(arguments, source.workers);
}

Json interval_json(const Interval& interval) { return Json::list(std::array{interval.low, interval.high}); }

}  // namespace limber

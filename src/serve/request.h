// A request on its way through a model: checked against what the model takes, row by row.
#pragma once

#include <span>
#include <vector>

#include "data/preprocess.h"
#include "serve/ready_variant.h"
#include "serve/service.h"

namespace limber {

// A request that waits.
struct Ticket {
  InferRequest request;
  InferDone done;
  int64_t rows = 1;
};

// How many rows the request has, or why the model cannot take it. `images`: whether input 0 may be encoded
// images.
ServeStatus check_request(const ServedSignature& signature, const InferRequest& request, bool images,
                          int64_t max_rows, int64_t& rows);

// Copies `count` rows of a request, from row `first` on, into a lane from its row `at` on; decodes images.
Status fill_rows(const ServedSignature& signature, const Preprocessor* preprocessor,
                 const InferRequest& request, int64_t first, int64_t count, Lane& lane, int64_t at);
// Makes the outputs that the request wants, of so many rows.
Result<std::vector<InferOutput>> make_outputs(const ServedSignature& signature, const InferRequest& request,
                                              int64_t rows);
// Copies `count` rows that a lane computed, from its row `at` on, into outputs from row `first` on.
void take_rows(const ServedSignature& signature, const Lane& lane, int64_t at, int64_t first, int64_t count,
               std::vector<InferOutput>& outputs);

}  // namespace limber

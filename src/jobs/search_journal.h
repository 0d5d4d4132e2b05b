// What searches found out, kept in the folder of the elastic model while they run.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "jobs/elastic_work.h"
#include "supernet/search/search.h"
#include "variant/variant_table.h"

namespace limber {

class SearchJournal {
 public:
  // Accuracies on other images, or with other labels, cannot be compared: what the table has of those stays
  // there and is not looked at.
  static Result<std::unique_ptr<SearchJournal>> open(ElasticWork& work);

  // What was evaluated before, on any machine; seconds are as the table of `work` predicts them.
  const std::vector<Scored>& known() const { return known_; }
  // What the folder knows of another model, or of blocks that have learnt since; see VariantTable::refused().
  Result<std::string> refused() const { return table_->refused(); }
  // Durable on return.
  Status add(std::span<const Scored> scored);
  Status add_measured(const Scored& scored, double seconds, uint64_t memory_bytes);

 private:
  SearchJournal(const ElasticWork& work, std::unique_ptr<VariantTable> table)
      : work_(work), table_(std::move(table)), images_(work.images.name()) {}
  Status read();
  Result<VariantRecord> record(const Scored& scored) const;

  const ElasticWork& work_;
  const std::unique_ptr<VariantTable> table_;
  const std::string images_;  // as the table calls them
  std::vector<Scored> known_;
};

}  // namespace limber

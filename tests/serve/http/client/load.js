// load.js URL FILE: posts the file by autocannon for two seconds on eight connections, pipelined by two; says how many
// were answered, and fails when one was not.
'use strict';
const assert = require('assert');
const fs = require('fs');
const autocannon = require('autocannon');

const [url, file] = process.argv.slice(2);
autocannon({
  url, method: 'POST', body: fs.readFileSync(file), headers: {'content-type': 'application/json'},
  connections: 8, pipelining: 2, duration: 2, timeout: 60,
}).then((result) => {
  assert.strictEqual(result.errors, 0, 'connections that failed');
  assert.strictEqual(result.timeouts, 0, 'requests without an answer');
  assert.strictEqual(result.non2xx, 0, 'requests that were refused');
  assert(result['2xx'] > 0, 'nothing was answered');
  console.log(`autocannon against ${url}: ${result['2xx']} answers, p99 ${result.latency.p99} ms`);
}).catch((error) => { console.error(error); process.exit(1); });

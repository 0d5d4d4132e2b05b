// What our ONNX Runtime scripts share: .npy files, tensors, session options. onnxruntime-node is found
// through NODE_PATH (see install.sh).
'use strict';

const fs = require('fs');
const path = require('path');
const readline = require('readline');
const ort = require('onnxruntime-node');

// ONNX Runtime's type name -> numpy's descriptor and the array class that holds the elements.
const TYPES = {
  float32: ['<f4', Float32Array],
  float64: ['<f8', Float64Array],
  float16: ['<f2', Uint16Array],
  int8: ['|i1', Int8Array],
  uint8: ['|u1', Uint8Array],
  int16: ['<i2', Int16Array],
  uint16: ['<u2', Uint16Array],
  int32: ['<i4', Int32Array],
  uint32: ['<u4', Uint32Array],
  int64: ['<i8', BigInt64Array],
  uint64: ['<u8', BigUint64Array],
  bool: ['|b1', Uint8Array],
};

// Reads a C-ordered little-endian .npy file into a tensor; throws on anything else.
function readNpy(file) {
  const bytes = fs.readFileSync(file);
  if (bytes.toString('latin1', 0, 6) !== '\x93NUMPY') throw new Error(`${file}: not a .npy file`);
  const wide = bytes[6] > 1;
  const start = wide ? 12 : 10;
  const end = start + (wide ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8));
  const header = bytes.toString('latin1', start, end);
  const descriptor = /'descr':\s*'([^']+)'/.exec(header)[1];
  const type = Object.keys(TYPES).find((name) => TYPES[name][0] === descriptor);
  if (!type || !/'fortran_order':\s*False/.test(header)) {
    throw new Error(`${file}: unsupported header ${header}`);
  }
  const dims = /'shape':\s*\(([^)]*)\)/.exec(header)[1].split(',').filter((part) => part.trim()).map(Number);
  const ArrayType = TYPES[type][1];
  const count = dims.reduce((a, b) => a * b, 1);
  const data = new ArrayType(count);
  new Uint8Array(data.buffer).set(bytes.subarray(end, end + data.byteLength));
  return new ort.Tensor(type, data, dims);
}

// Writes a tensor as .npy version 1.0.
function writeNpy(file, tensor) {
  const shape = tensor.dims.map((dim) => `${dim},`).join(' ');
  const text = `{'descr': '${TYPES[tensor.type][0]}', 'fortran_order': False, 'shape': (${shape}), }`;
  const header = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + '\n';
  const start = Buffer.alloc(10);
  start.write('\x93NUMPY\x01\x00', 'latin1');
  start.writeUInt16LE(header.length, 8);
  const data = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
  fs.writeFileSync(file, Buffer.concat([start, Buffer.from(header, 'latin1'), data]));
}

// The options a careful user would set for latency on T threads; everything else is ONNX Runtime's default.
function sessionOptions(threads) {
  return {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    executionMode: 'sequential',
    logSeverityLevel: 3,
  };
}

// ONNX Runtime's version, from its package.
function version() {
  const main = require.resolve('onnxruntime-node');
  return JSON.parse(fs.readFileSync(path.join(path.dirname(main), '..', 'package.json'))).version;
}

// Answers every line of stdin with one line: what `answer(line)` resolves to, or "error <message>". Ends on
// "quit" or at the end of input.
async function serve(answer) {
  for await (const line of readline.createInterface({input: process.stdin})) {
    if (line === 'quit') break;
    let reply;
    try {
      reply = await answer(line);
    } catch (error) {
      reply = `error ${String(error.message || error).replace(/\s+/g, ' ')}`;
    }
    process.stdout.write(reply + '\n');
  }
  process.exit(0);
}

module.exports = {ort, readNpy, writeNpy, sessionOptions, version, serve};

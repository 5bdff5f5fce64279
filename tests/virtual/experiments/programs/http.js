#!/usr/bin/env node
// http.js serve | http.js ask HOST: requests with random keys, ten at a time, timed.
'use strict';
const crypto = require('crypto');
const http = require('http');

const [role, host] = process.argv.slice(2);

function serve() {
  let count = 0;
  http.createServer((request, response) => {
    count += 1;
    setTimeout(() => response.end(JSON.stringify({ count, url: request.url, at: Date.now() })),
      Math.random() * 20);
  }).listen(8080, () => console.log('listening', process.pid, process.hrtime.bigint()));
}

function ask(number) {
  return new Promise((resolve) => {
    const began = process.hrtime.bigint();
    const key = crypto.randomBytes(8).toString('hex');
    const over = (what) => {
      console.log(Date.now(), number, key, what, Number(process.hrtime.bigint() - began) / 1e6);
      resolve();
    };
    http.get({ host, port: 8080, path: `/${key}` }, (response) => {
      let text = '';
      response.on('data', (part) => { text += part; });
      response.on('end', () => over(text));
    }).on('error', (error) => over(error.code));
  });
}

async function load() {
  for (let round = 0; round < 30; round += 1) {
    await Promise.all([...Array(10).keys()].map((n) => ask(round * 10 + n)));
    console.log(round, crypto.randomUUID(), Math.random(), Object.keys(process.memoryUsage()));
  }
}

if (role === 'serve') serve(); else load();

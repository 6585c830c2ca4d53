import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { remedyFor } from './redis-errors.ts';

/** What Redis 6.2 and 7 say, word for word, and what it means for a call. */
const cases: readonly (readonly [string, ReturnType<typeof remedyFor>])[] = [
  ['NOSCRIPT No matching script. Please use EVAL.', { action: 'load-script', kind: 'script' }],
  [
    "READONLY You can't write against a read only replica. script: 9f, on @user_script:3.",
    { action: 'reconnect', kind: 'readonly' },
  ],
  [
    "ERR Error running script (call to f_9f): @user_script:9: @user_script: 9: -READONLY You can't write against a read only replica.",
    { action: 'reconnect', kind: 'readonly' },
  ],
  [
    "OOM command not allowed when used memory > 'maxmemory'. script: 9f, on @user_script:3.",
    { action: 'fail', kind: 'oom' },
  ],
  [
    "ERR Error running script (call to f_9f): @user_script:9: @user_script: 9: -OOM command not allowed when used memory > 'maxmemory'.",
    { action: 'fail', kind: 'oom' },
  ],
  ['MOVED 3999 127.0.0.1:6381', { action: 'moved', kind: 'busy', address: '127.0.0.1:6381' }],
  ['ASK 3999 [::1]:6381', { action: 'ask', kind: 'busy', address: '[::1]:6381' }],
  [
    'TRYAGAIN Multiple keys request during rehashing of slot',
    { action: 'one-by-one', kind: 'busy' },
  ],
  ['CLUSTERDOWN The cluster is down', { action: 'retry', kind: 'busy' }],
  ['MASTERDOWN Link with MASTER is down', { action: 'retry', kind: 'busy' }],
  ['LOADING Redis is loading the dataset in memory', { action: 'retry', kind: 'busy' }],
  [
    'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
    { action: 'retry', kind: 'busy' },
  ],
  ['NOREPLICAS Not enough good replicas to write.', { action: 'fail', kind: 'readonly' }],
  [
    'MISCONF Redis is configured to save RDB snapshots, but it is unable to persist to disk.',
    { action: 'fail', kind: 'readonly' },
  ],
  ['NOAUTH Authentication required.', { action: 'fail', kind: 'auth' }],
  [
    "NOPERM this user has no permissions to run the 'evalsha' command",
    { action: 'fail', kind: 'auth' },
  ],
  [
    'WRONGPASS invalid username-password pair or user is disabled.',
    { action: 'fail', kind: 'auth' },
  ],
  [
    'ERR user_script:9: attempt to index a nil value script: 9f',
    { action: 'fail', kind: 'script' },
  ],
  ['Connection is closed.', { action: 'fail', kind: 'down' }],
  [
    "Stream isn't writeable and enableOfflineQueue options is false",
    { action: 'fail', kind: 'down' },
  ],
  [
    'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.',
    { action: 'fail', kind: 'down' },
  ],
  ['', { action: 'fail', kind: 'down' }],
];

describe('an error', () => {
  for (const [message, remedy] of cases) {
    test(`"${message.slice(0, 60)}" means ${remedy.action}, ${remedy.kind}`, () => {
      assert.deepEqual(remedyFor(new Error(message)), remedy);
    });
  }

  test('that the client calls a reply is the script’s, whatever it says', () => {
    const error = new Error('something new');
    error.name = 'ReplyError';

    assert.deepEqual(remedyFor(error), { action: 'fail', kind: 'script' });
  });
});

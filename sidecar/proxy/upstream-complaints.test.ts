import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProxyCounters } from './proxy-counters.ts';
import { UpstreamComplaints, type UpstreamFailures } from './upstream-complaints.ts';

describe('complaints about the application', () => {
  it('name what has failed, at once and then each minute, by kind', () => {
    const { upstreamErrors } = new ProxyCounters();
    upstreamErrors.timeout = 7;
    const told: UpstreamFailures[] = [];
    const complaints = new UpstreamComplaints(upstreamErrors, (failures) => told.push(failures));

    complaints.look(0);
    upstreamErrors.connect += 4;
    complaints.look(500);
    upstreamErrors.connect += 1;
    upstreamErrors.closed += 2;
    complaints.look(60_499);
    complaints.look(60_500);
    complaints.look(200_000);

    assert.deepEqual(told, [{ connect: 4 }, { connect: 1, closed: 2 }]);
  });
});

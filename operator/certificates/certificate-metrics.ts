// How long what is served and what is trusted is valid, for the alert that comes before the end.
import { Gauge, type Registry } from 'prom-client';
import { validityOf } from '../../contract/certificate.ts';
import type { ServingIdentity } from './certificate-source.ts';

export function openCertificateMetrics(registry: Registry): (identity: ServingIdentity) => void {
  const gauge = new Gauge({
    name: 'weir_tls_not_after_seconds',
    help: 'When the certificate ends, in seconds since 1970: the served one and the first authority of the bundle.',
    labelNames: ['certificate'],
    registers: [registry],
  });
  return ({ notAfterMs, trust }) => {
    gauge.set({ certificate: 'serving' }, notAfterMs / 1_000);
    const authority = validityOf(trust, 'the authority');
    gauge.set({ certificate: 'authority' }, authority.notAfterMs / 1_000);
  };
}

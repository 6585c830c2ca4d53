// What the rules count. Plain numbers, read when metrics are scraped; they outlive the bundles.

export interface RuleCounters {
  /** Run-time errors of CEL expressions: each was "no match" or "missing key". */
  celErrors: number;
  claimsVerified: number;
  claimsRejected: number;
}

export function newRuleCounters(): RuleCounters {
  return { celErrors: 0, claimsVerified: 0, claimsRejected: 0 };
}

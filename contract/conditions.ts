// What the status of a policy may say. docs/conditions.md gives cause and remedy of each reason; a test holds the
// two lists equal in both directions.

/** Every condition with its reasons: that of all being well, then the others; the first of these that holds is told. */
export const conditionReasons = {
  Accepted: ['Accepted', 'UnsupportedField', 'InvalidCEL', 'TooLarge', 'Invalid'],
  ResolvedRefs: [
    'ResolvedRefs',
    'KeySetPending',
    'KeySetRefused',
    'KeySetUnavailable',
    'KeySetInvalid',
    'PortNotFound',
  ],
  Programmed: ['Programmed', 'NotAccepted', 'NoSidecars', 'Rejected', 'SidecarTooOld', 'Pending'],
  Enforced: [
    'Enforced',
    'NotAccepted',
    'Disabled',
    'NoMatchingPods',
    'NotInjected',
    'NotProgrammed',
    'Shadow',
    'Bypassable',
    'StoreUnavailable',
    'ClientIPIsProxy',
  ],
} as const;

export type ConditionType = keyof typeof conditionReasons;
export type ConditionReason<Type extends ConditionType> = (typeof conditionReasons)[Type][number];

/** As metav1.Condition, without the time: that is the writer's. */
export interface ConditionState<Type extends ConditionType = ConditionType> {
  readonly type: Type;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: ConditionReason<Type>;
  /** One sentence: what is so, and where it is not, what to do. */
  readonly message: string;
}

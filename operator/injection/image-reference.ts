// What may name an image: in an annotation, in the operator's settings and in flags of `weir inject` alike. What a
// registry makes of it is the kubelet's business.

/** Of a container image's reference, as the API server takes it. */
export const IMAGE_LENGTH_MAX = 255;

export const imageReference: {
  readonly pattern: RegExp;
  /** Ends the sentence `expected …`. */
  readonly values: string;
} = {
  pattern: new RegExp(`^[a-zA-Z0-9][a-zA-Z0-9._\\-/:@]{0,${IMAGE_LENGTH_MAX - 1}}$`),
  values: `an image reference of at most ${IMAGE_LENGTH_MAX} characters`,
};

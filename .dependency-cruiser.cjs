// The direction of dependencies, as ARCHITECTURE.md draws it:
//   contract ← crds ← { sidecar, operator } ← cli
/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      comment: 'At run time. Two classes may know each other by type: such an import is erased.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'contract-imports-nothing-of-ours',
      comment: 'Operator and sidecar must be able to agree without dragging each other along.',
      severity: 'error',
      from: { path: '^contract/' },
      to: { pathNot: '^(contract|test/support)/', dependencyTypesNot: ['core', 'npm'] },
    },
    {
      name: 'crds-below-sidecar-and-operator',
      severity: 'error',
      from: { path: '^crds/' },
      to: { path: '^(sidecar|operator|cli|test|bench|scripts)/', pathNot: '^test/support/' },
    },
    {
      name: 'sidecar-and-operator-are-strangers',
      severity: 'error',
      from: { path: '^sidecar/', pathNot: '[.]test[.]ts$' },
      to: { path: '^(operator|cli|test|bench|scripts)/' },
    },
    {
      name: 'operator-and-sidecar-are-strangers',
      severity: 'error',
      from: { path: '^operator/', pathNot: '[.]test[.]ts$' },
      to: { path: '^(sidecar|cli|test|bench|scripts)/' },
    },
    {
      name: 'nobody-imports-cli',
      comment: 'cli is the composition root.',
      severity: 'error',
      from: { path: '^(contract|crds|sidecar|operator)/' },
      to: { path: '^cli/' },
    },
    {
      name: 'pure-folders-do-no-io',
      comment: 'Decisions stay testable without a socket, a file or a clock.',
      severity: 'error',
      from: {
        path: '^(contract|crds|sidecar/http1|sidecar/http2|sidecar/limiter|sidecar/rules|sidecar/counters|operator/policy|operator/injection)/',
        pathNot: '[.]test[.]ts$',
      },
      to: {
        dependencyTypes: ['core'],
        path: '^(node:)?(fs|net|http|https|http2|tls|dns|child_process|cluster|worker_threads|dgram|timers|readline|process|os)(/|$)',
      },
    },
    {
      name: 'pure-limiter-and-http1-need-no-package',
      severity: 'error',
      from: { path: '^(sidecar/http1|sidecar/http2|sidecar/counters)/', pathNot: '[.]test[.]ts$' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'npm-optional'] },
    },
    {
      name: 'only-the-store-knows-ioredis',
      severity: 'error',
      from: { pathNot: '^(sidecar/store/|test/|bench/)' },
      to: { path: 'node_modules/ioredis' },
    },
    {
      name: 'only-certificates-know-x509',
      comment: 'It wants a polyfill of Reflect; whoever only reads a certificate asks node:crypto.',
      severity: 'error',
      from: { pathNot: '^(operator/certificates/|test/)' },
      to: { path: 'node_modules/@peculiar/x509' },
    },
    {
      name: 'tests-are-never-imported',
      severity: 'error',
      from: { pathNot: '([.]test[.]ts$|^test/|^bench/|^scripts/)' },
      to: { path: '([.]test[.]ts$|^test/)' },
    },
    {
      name: 'no-development-package-in-the-product',
      severity: 'error',
      from: { path: '^(contract|crds|sidecar|operator|cli)/', pathNot: '[.]test[.]ts$' },
      to: { dependencyTypes: ['npm-dev'] },
    },
    {
      name: 'not-to-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
    },
  },
};

// The command line as a tree of commands, for `main.ts` to run and for the docs to be compared with.
// A command that is not built yet is not listed.
import process from 'node:process';
import { Command, Option } from 'commander';
import { operatorSettings } from '../operator/operator-settings.ts';
import { settings } from '../sidecar/run-settings.ts';
import { environmentName, type Setting } from '../contract/setting.ts';
import { addEpilogue } from './help-text.ts';
import type { InjectOptions } from './inject.ts';
import type { RedirectOptions } from './redirect.ts';
import { refuseMissing, requiredOption } from './required-options.ts';
import { reportFailure, wantsColour } from './terminal.ts';
import { readVersion } from './version.ts';

export function buildProgram(): Command {
  const program = new Command('weir')
    .description('Exact rate limits for HTTP traffic: a policy, a sidecar, one shared store.')
    .version(readVersion(), '-V, --version')
    .helpCommand('help [command]', 'say how a command is used')
    .showHelpAfterError('(weir --help lists the commands)')
    .configureOutput({
      outputError: (text, write) => {
        write(text.replace(/^error: /, 'weir: '));
      },
    })
    .exitOverride();
  for (const command of [
    runCommand(),
    checkCommand(),
    injectCommand(),
    operatorCommand(),
    drainCommand(),
    waitCommand(),
    redirectCommand(),
  ]) {
    program.addCommand(command.copyInheritedSettings(program));
  }
  return program;
}

function runCommand(): Command {
  const command = new Command('run')
    .description('Run a sidecar that enforces policy files on the way to one application.')
    .allowExcessArguments(false);
  for (const setting of settings) command.addOption(optionOf(setting));
  return addEpilogue(command, RUN_EPILOGUE)
    .option(
      '--print-config',
      'print the effective configuration as JSON, secrets redacted, and exit',
    )
    .action(async (flags: Record<string, string | string[] | boolean>) => {
      const { runSidecarCommand } = await import('./run.ts');
      await runSidecarCommand(flags).catch(reportFailure);
    });
}

function operatorCommand(): Command {
  const command = new Command('operator')
    .description('Watch policies, inject sidecars into pods and push rules to them.')
    .allowExcessArguments(false);
  for (const setting of operatorSettings) command.addOption(optionOf(setting));
  return addEpilogue(command, OPERATOR_EPILOGUE)
    .option('--print-config', 'print the effective configuration as JSON and exit')
    .action(async (flags: Record<string, string | string[] | boolean>) => {
      const { runOperatorCommand } = await import('./operator.ts');
      await runOperatorCommand(flags, readVersion()).catch(reportFailure);
    });
}

const VARIABLES =
  'Every option can be given as the environment variable in brackets; an option beats the variable.';

const OPERATOR_EPILOGUE = {
  prose: [VARIABLES],
  examples: [
    'weir operator --store-secret weir-store',
    'weir operator --kubeconfig ~/.kube/config --leader-elect false',
  ],
};

function optionOf(setting: Setting<unknown>): Option {
  const flags = `--${setting.name} <${setting.placeholder}${setting.isList ? '…' : ''}>`;
  const written = setting.written === undefined ? '' : `, default ${setting.written}`;
  const summary = `${setting.summary} (${environmentName(setting.name)}${written})`;
  // The value stays text here: sidecar/config.ts parses flags and variables alike.
  const option = new Option(flags, summary);
  if (!setting.isList) return option;
  return option.argParser((text: string, before: string[] | undefined) => [
    ...(before ?? []),
    text,
  ]);
}

const RUN_EPILOGUE = {
  prose: [VARIABLES],
  examples: [
    'weir run --policy policy.yaml --upstream localhost:3000',
    'weir run --policy policies/ --upstream localhost:3000 --listen 0.0.0.0:8080',
    'weir run --policy policy.yaml --upstream localhost:3000 \\',
    '  --redis redis://localhost:6379',
  ],
};

function checkCommand(): Command {
  return addEpilogue(new Command('check'), CHECK_EPILOGUE)
    .description('Validate policy files and say in plain words what each policy does.')
    .argument('<file...>', 'policy files, or folders of *.yaml, *.yml and *.json')
    .option(
      '--against <old>',
      'say which clients would start with fresh buckets after replacing OLD',
    )
    .addOption(outputOption())
    .action(async (files: string[], options: { output: 'text' | 'json'; against?: string }) => {
      const { runCheck } = await import('./check.ts');
      process.exitCode = await runCheck(files, {
        ...options,
        colour: wantsColour(process.stdout),
        write: (text) => process.stdout.write(text),
        writeError: (text) => process.stderr.write(text),
      });
    });
}

const CHECK_EPILOGUE = {
  examples: [
    'weir check policy.yaml',
    'weir check policies/ --output json',
    'weir check new.yaml --against old.yaml',
  ],
};

function outputOption(): Option {
  return new Option('--output <form>', 'text for people, json for scripts')
    .choices(['text', 'json'])
    .default('text');
}

function injectCommand(): Command {
  return addEpilogue(new Command('inject'), INJECT_EPILOGUE)
    .description('Add the sidecar to the pods in manifests, as the webhook does.')
    .addOption(
      requiredOption(
        '-f, --filename <FILE|DIR|->',
        'manifests; may be given several times',
      ).argParser(collect),
    )
    .addOption(
      requiredOption('--operator <URL>', 'where sidecars find the operator: https://HOST:PORT'),
    )
    .addOption(
      requiredOption('--operator-ca <FILE>', 'certificates that sidecars trust for it, as PEM'),
    )
    .addOption(requiredOption('--image <IMAGE>', 'image of the sidecar'))
    .addOption(
      requiredOption(
        '--server-version <1.N>',
        'version of the cluster: a native sidecar before 1.33 would cut a pod off from its Service',
      ),
    )
    .option(
      '--redirect-image <IMAGE>',
      'image that writes redirect rules; absent = no pod gets any',
    )
    .addOption(
      new Option('--mode <MODE>', 'for pods that do not say')
        .choices(['auto', 'takeover', 'redirect'])
        .default('auto'),
    )
    .option('-n, --namespace <NAME>', 'namespace of objects that name none', 'default')
    .option('--all', 'inject pods as well that do not ask by weir.dev/inject')
    .addOption(
      new Option('--output <form>', 'yaml keeps comments; json is one List')
        .choices(['yaml', 'json'])
        .default('yaml'),
    )
    .action(async (options: InjectOptions, command: Command) => {
      await runInjectCommand(options, command).catch(reportFailure);
    });
}

async function runInjectCommand(options: InjectOptions, command: Command): Promise<void> {
  refuseMissing(command);
  const { runInject } = await import('./inject.ts');
  const { text } = await import('node:stream/consumers');
  process.exitCode = await runInject(options, {
    version: readVersion(),
    readInput: () => text(process.stdin),
    write: (part) => process.stdout.write(part),
    writeError: (part) => process.stderr.write(part),
  });
}

function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

const INJECT_EPILOGUE = {
  prose: [
    'Services and Namespaces among the manifests decide the mode, as those in the cluster would. Exit code 1: a manifest cannot be read, or a pod that asked could not be injected; where it is required nothing is printed.',
  ],
  examples: [
    'weir inject -f app.yaml --image weir.dev/sidecar:0.1.0 --server-version 1.36 \\',
    '  --redirect-image weir.dev/redirect-init:0.1.0 \\',
    '  --operator https://weir-operator.weir-system.svc:8443 --operator-ca ca.crt \\',
    '  | kubectl apply -f -',
    'kustomize build . | weir inject -f - --all --mode takeover \\',
    '  --operator https://weir-operator.weir-system.svc:8443 --operator-ca ca.crt \\',
    '  --image weir.dev/sidecar:0.1.0 --server-version 1.36',
  ],
};

function drainCommand(): Command {
  return addEpilogue(new Command('drain'), {
    examples: ['weir drain', 'weir drain --admin 127.0.0.1:15090'],
  })
    .description("Turn draining on in a running sidecar (the pod's preStop hook).")
    .option('--admin <ADDR:PORT>', 'the admin listener of the sidecar (WEIR_ADMIN)')
    .option('--hold <DURATION>', 'return only after this time: the app is to end first')
    .action(async (options: { admin?: string; hold?: string }) => {
      const { runDrain } = await import('./drain.ts');
      await runDrain(options).catch(reportFailure);
    });
}

function waitCommand(): Command {
  return addEpilogue(new Command('wait'), { examples: ['weir wait --deadline 5s'] })
    .description(
      "Return when a sidecar listens, or when the deadline has passed (the pod's postStart hook).",
    )
    .option('--admin <ADDR:PORT>', 'the admin listener of the sidecar (WEIR_ADMIN)')
    .option('--deadline <DURATION>', 'how long to wait', '10s')
    .action(async (options: { admin?: string; deadline: string }) => {
      const { runWait } = await import('./wait.ts');
      await runWait(options).catch(reportFailure);
    });
}

function redirectCommand(): Command {
  return addEpilogue(new Command('redirect'), REDIRECT_EPILOGUE)
    .description("Redirect a pod's ports to its sidecar (the init container of redirect mode).")
    .option('--forward <APP:LISTEN>', "an app's port and the sidecar's; may be repeated", collect)
    .option(
      '--probe <PROBE:APP>',
      "a port that the kubelet asks and the app's forwarded one, past the sidecar; may be repeated",
      collect,
    )
    .option('--dry-run', 'print the commands instead of running them')
    .addOption(outputOption())
    .action(async (options: RedirectOptions) => {
      const { runRedirect } = await import('./redirect.ts');
      const write = (text: string): void => {
        process.stdout.write(text);
      };
      await runRedirect(options, write).catch(reportFailure);
    });
}

const REDIRECT_EPILOGUE = {
  prose: [
    'Changes the network it runs in, so it belongs into a pod. It needs NET_ADMIN, user 0 and iptables. Exit code 1: not every rule could be proven, and the pod must not start.',
  ],
  examples: [
    'weir redirect --forward 8080:15100 --probe 15300:8080',
    'weir redirect --forward 8080:15100 --dry-run',
  ],
};

// `npm run lint:deploy`: the image file, the chart, the manifests and the workflows, each by a linter made for it. Linters that
// are not installed are named; a finding ends with the linter's output. All of them work without a network.

import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dir, '..')
const chart = 'deploy/helm/tollgate'
const kubernetes = 'deploy/kubernetes'
const strictly = ['kubernetes-validate', '--strict', '--quiet']

/** Values that change what the chart renders. A tag may be a number in a values file. */
const chartValues: readonly (readonly string[])[] = [
  [],
  ['--set', 'image.digest=sha256:abc,service.type=LoadBalancer,replicas=2'],
  ['--set', 'image.tag=1'],
]

function run(...command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: root })
  if (exitCode !== 0) throw new Error(`${command.join(' ')} failed:\n${stdout}${stderr}`)
  return stdout.toString()
}

const filesIn = (folder: string, isOne = (_name: string) => true): string[] =>
  readdirSync(join(root, folder))
    .filter(isOne)
    .sort()
    .map((name) => join(folder, name))

async function checkChart(): Promise<void> {
  for (const values of chartValues) {
    const rendered = join(tmpdir(), `tollgate-chart-${crypto.randomUUID()}.yaml`)
    const text = run('helm', 'template', 'tollgate', chart, ...values)
    // A value of a type that the template does not expect.
    if (text.includes('%!')) throw new Error(`the chart with ${values.join(' ')} renders:\n${text}`)
    await Bun.write(rendered, text)
    try {
      run(...strictly, rendered)
    } finally {
      await Bun.file(rendered).delete()
    }
  }
}

interface Check {
  readonly what: string
  readonly tools: readonly string[]
  check(): unknown
}

const checks: readonly Check[] = [
  { what: 'the image file', tools: ['hadolint'], check: () => run('hadolint', 'deploy/Dockerfile') },
  { what: 'the chart', tools: ['helm'], check: () => run('helm', 'lint', '--strict', chart) },
  { what: 'what the chart renders', tools: ['helm', 'kubernetes-validate'], check: checkChart },
  {
    what: 'the manifests',
    tools: ['kubernetes-validate'],
    // A kustomization is a file for a tool and no object of the cluster.
    check: () => run(...strictly, ...filesIn(kubernetes, (name) => name !== 'kustomization.yaml')),
  },
  { what: 'the workflows', tools: ['actionlint'], check: () => run('actionlint', ...filesIn('.github/workflows')) },
]

/** Throws on a finding. */
export async function lint(say: (line: string) => void): Promise<void> {
  for (const { what, tools, check } of checks) {
    const missing = tools.filter((tool) => Bun.which(tool) === null)
    if (missing.length === 0) await check()
    say(
      missing.length === 0
        ? `checked: ${what} (${tools.join(', ')})`
        : `not checked: ${what} (${missing.join(', ')} not installed)`,
    )
  }
}

if (import.meta.main) {
  try {
    await lint((line) => void process.stdout.write(`${line}\n`))
  } catch (thrown) {
    process.stderr.write(`${thrown instanceof Error ? thrown.message : String(thrown)}\n`)
    process.exitCode = 1
  }
}

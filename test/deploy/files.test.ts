import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { allBuiltInModels } from '../../src/catalog/data/built-in.ts'
import { knownVariables } from '../../src/config/environment.ts'
import { readConfigFile } from '../../src/config/file.ts'
import { builtInProviderIds, providerVariables } from '../../src/providers/registry.ts'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { readDockerfile } from './dockerfile.ts'
import { root } from './site.ts'

// Checks of the deployment files that need no cluster: that they parse, that what they name exists, and that
// their numbers fit together.

const deploy = join(root, 'deploy')
const read = (path: string) => readFileSync(join(deploy, path), 'utf8')
// biome-ignore lint/suspicious/noExplicitAny: YAML of many shapes.
const yaml = (path: string): any => parse(read(path), { merge: true })

const dockerfile = readDockerfile(read('Dockerfile'))
const compose = yaml('compose/compose.yaml')
const deployment = yaml('kubernetes/deployment.yaml')
const container = deployment.spec.template.spec.containers[0]
const unit = read('systemd/tollgate.service')

const known = new Set([...knownVariables, ...providerVariables, 'BUN_CONFIG_MAX_HTTP_REQUESTS'])
const unknown = (names: readonly string[]) => names.filter((name) => !known.has(name))
const probePaths = ['/healthz', '/readyz']

/** A version with at least two numbers, or a dated snapshot; never `latest`, never a bare name. */
const isPinned = (image: string) => /:[a-z-]*\d+(\.\d+)+|:[a-z]+-\d{8}/.test(image)

test('every YAML file of deploy/ parses', () => {
  const files = readdirSync(deploy, { recursive: true, encoding: 'utf8' }).filter(
    // The files of the chart are templates.
    (name) => name.endsWith('.yaml') && !name.includes('templates/'),
  )
  expect(files.length).toBeGreaterThanOrEqual(7)
  for (const file of files) expect({ file, content: yaml(file) }).toEqual({ file, content: expect.any(Object) })
})

test('the npm package has the launcher and what it runs, and the chart has the version of the package', () => {
  expect(manifest.files).toEqual(
    expect.arrayContaining(['bin', 'src', '!src/**/*.test.*', 'docs/**/*.md', 'docs/recipes']),
  )
  expect(manifest.bin).toEqual({ tollgate: 'bin/tollgate' })
  const { version, appVersion } = yaml('helm/tollgate/Chart.yaml')
  expect([version, appVersion]).toEqual([manifest.version, manifest.version])
})

test('the lock file, the changelog and the documentation name the version of the package', () => {
  const { version } = manifest
  const text = (path: string) => readFileSync(join(root, path), 'utf8')
  const lock = JSON.parse(text('package-lock.json'))
  expect([lock.version, lock.packages[''].version]).toEqual([version, version])
  // The newest section, with the date once it is released.
  expect(/^## (\S+)/m.exec(text('CHANGELOG.md'))?.[1]).toBe(version)
  const pages = [
    'README.md',
    ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md') && !name.startsWith('decisions/'))
      .map((name) => join('docs', name)),
  ]
  const named = pages.flatMap((page) =>
    [...text(page).matchAll(/tollgate[-: ]v?(\d+\.\d+\.\d+(?:-rc\.\d+)?)/g)].map((match) => [page, match[1]] as const),
  )
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter(([, said]) => said !== version)).toEqual([])
})

test('every image is pinned, and ours has the version of the package', () => {
  const ours = `tollgate:${manifest.version}`
  const images = [
    ...dockerfile.filter(({ name }) => name === 'FROM').map(({ rest }) => rest.split(' ')[0] ?? ''),
    ...Object.values<{ image: string }>(compose.services).map(({ image }) => image),
    container.image,
  ]
  expect(images).toHaveLength(8)
  expect(images.filter((image) => !isPinned(image))).toEqual([])
  expect(images.filter((image) => image.startsWith('tollgate:') && image !== ours)).toEqual([])
  expect(read('Dockerfile')).toContain(`-t ${ours} `)
  expect(['latest', 'postgres', 'postgres:17', 'debian:bookworm-slim'].filter(isPinned)).toEqual([])
})

test('every variable that is set is one the gateway knows', () => {
  const inDockerfile = dockerfile.filter(({ name }) => name === 'ENV').map(({ rest }) => rest.split('=')[0] ?? '')
  const inUnit = [...unit.matchAll(/^Environment=([A-Z_]+)=/gm)].map((match) => match[1] ?? '')
  const inPod = container.env.map(({ name }: { name: string }) => name)
  for (const names of [inDockerfile, inUnit, inPod]) expect(names.length).toBeGreaterThan(2)
  expect(unknown([...inDockerfile, ...inUnit, ...inPod])).toEqual([])
  for (const name of ['gateway-1', 'gateway-2']) {
    expect(unknown(Object.keys(compose.services[name].environment))).toEqual([])
  }
})

test('env.example has every variable of compose.yaml, and secrets have no default', () => {
  const asked = new Set([...read('compose/compose.yaml').matchAll(/\$\{([A-Z_]+)/g)].map((match) => match[1] ?? ''))
  const offered = [...read('compose/env.example').matchAll(/^([A-Z_]+)=/gm)].map((match) => match[1] ?? '')
  expect([...asked].sort()).toEqual([...new Set(offered)].sort())
  for (const name of ['POSTGRES_PASSWORD', 'TOLLGATE_SECRET', 'TOLLGATE_ADMIN_TOKEN']) {
    expect(read('compose/compose.yaml')).not.toMatch(new RegExp(`\\$\\{${name}(:-|\\})`))
    expect(read('compose/env.example')).toMatch(new RegExp(`^${name}=$`, 'm'))
  }
})

test('every compose service is hardened, and only the proxy can be reached', () => {
  const services: Record<string, Record<string, unknown>> = compose.services
  expect(Object.keys(services).sort()).toEqual(['gateway-1', 'gateway-2', 'postgres', 'proxy', 'valkey'])
  const published = Object.entries(services).filter(([, service]) => service.ports !== undefined)
  expect(published.map(([name, { ports }]) => [name, ports])).toEqual([['proxy', ['127.0.0.1:8080:8080']]])
  for (const [name, service] of Object.entries(services)) {
    expect({ name, options: service.security_opt }).toEqual({ name, options: ['no-new-privileges:true'] })
    // PostgreSQL's image starts as root to take over its folder.
    if (name !== 'postgres')
      expect({ name, r: service.read_only, c: service.cap_drop }).toEqual({ name, r: true, c: ['ALL'] })
  }
})

test('probes ask for paths that the gateway has', () => {
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    expect(probePaths).toContain(container[probe].httpGet.path)
    expect(container[probe].httpGet.port).toBe(container.ports[0].name)
  }
  expect(container.livenessProbe.httpGet.path).toBe('/healthz')
  expect(container.readinessProbe.httpGet.path).toBe('/readyz')
  const handler = readFileSync(join(root, 'src/http/handler.ts'), 'utf8')
  for (const path of probePaths) expect(handler).toContain(`'${path}'`)
})

test('every deployment waits longer for the gateway to stop than it drains', () => {
  const server = parse(yaml('kubernetes/config-map.yaml').data['tollgate.yaml']).server
  const preStop = Number(container.lifecycle.preStop.exec.command[1])
  expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(
    preStop + server.drain_seconds + 10,
  )
  for (const name of ['gateway-1', 'gateway-2']) {
    const { environment, stop_grace_period } = compose.services[name]
    expect(Number.parseInt(stop_grace_period, 10)).toBeGreaterThan(Number(environment.TOLLGATE_DRAIN_SECONDS) + 10)
  }
  // The default of TOLLGATE_DRAIN_SECONDS.
  expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThan(120 + 10)
})

test('the configuration in the config map is a good one', () => {
  const text = yaml('kubernetes/config-map.yaml').data['tollgate.yaml']
  const options = {
    fileName: 'tollgate.yaml',
    folder: '/',
    env: {},
    builtInProviderIds,
    builtInModels: allBuiltInModels,
    readFile: () => '',
  }
  const { faults, warnings } = readConfigFile(text, options)
  expect({ faults, warnings }).toEqual({ faults: [], warnings: [] })
})

test('the pods are what their service, budget and security level expect', () => {
  const labels = deployment.spec.template.metadata.labels
  expect(deployment.spec.selector.matchLabels).toEqual(labels)
  expect(yaml('kubernetes/service.yaml').spec.selector).toEqual(labels)
  expect(yaml('kubernetes/service.yaml').spec.ports[0].targetPort).toBe(container.ports[0].name)
  expect(yaml('kubernetes/pod-disruption-budget.yaml').spec.selector.matchLabels).toEqual(labels)
  const [, user] = /^(\d+):/.exec(dockerfile.find(({ name }) => name === 'USER')?.rest ?? '') ?? []
  expect(deployment.spec.template.spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: Number(user) })
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  expect(deployment.spec.template.spec.enableServiceLinks).toBe(false)
  for (const name of yaml('kubernetes/kustomization.yaml').resources) {
    expect({ name, exists: existsSync(join(deploy, 'kubernetes', name)) }).toEqual({ name, exists: true })
  }
})

test.skipIf(Bun.which('systemd-analyze') === null)(
  'systemd finds nothing wrong with the unit, and little exposed',
  () => {
    using folder = createThrowAwayFolder()
    const file = join(folder.path, 'tollgate.service')
    // The program is not installed here, and systemd looks for it.
    writeFileSync(file, unit.replaceAll('/usr/local/bin/tollgate', '/bin/true'))
    const verified = Bun.spawnSync(['systemd-analyze', 'verify', file])
    expect([verified.exitCode, verified.stderr.toString()]).toEqual([0, ''])
    // Tenths of points from 0, safe, to 10; 96 would be a unit without a single measure.
    const rated = Bun.spawnSync(['systemd-analyze', 'security', '--offline=true', '--threshold=20', file])
    expect([rated.exitCode, rated.stderr.toString()]).toEqual([0, ''])
  },
)

test.skipIf(Bun.which('kubectl') === null)('kubectl builds the manifests into one', () => {
  const built = Bun.spawnSync(['kubectl', 'kustomize', join(deploy, 'kubernetes')])
  expect(built.stderr.toString()).toBe('')
  const kinds = [...built.stdout.toString().matchAll(/^kind: (\w+)$/gm)].map((match) => match[1])
  expect(kinds.sort()).toEqual(['ConfigMap', 'Deployment', 'Namespace', 'PodDisruptionBudget', 'Service'])
})

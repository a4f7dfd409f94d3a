// Runs the installer of a peer (npm, pip, go) in its folder. Called only when the person who runs the benchmark asked for
// downloads by --install-peers.

const INSTALL_MS_MAX = 900_000

/** The error, or nothing. */
export function runInstaller(
  command: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): string | undefined {
  const { success, stderr } = Bun.spawnSync([...command], {
    cwd: folder,
    // The operator's own: mirrors, proxies and certificates of the installers are set there.
    env: { ...process.env, ...environment },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
    timeout: INSTALL_MS_MAX,
  })
  if (success) return undefined
  const lines = stderr.toString().trim().split('\n')
  const line = lines.find((text) => /error|forbidden|not found/i.test(text)) ?? lines.at(-1) ?? 'no reason given'
  return `could not be installed: ${line.trim().slice(0, 240)}`
}

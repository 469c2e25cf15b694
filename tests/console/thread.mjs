// What it costs a browser to open and to scroll a page.

// Returns a function that says how many milliseconds of processor time the thread of the page has taken since. Another
// program on the machine does not make it more, so that a test can bound it.
export async function taskTime(page) {
  const asked = await page.context().newCDPSession(page)
  await asked.send('Performance.enable', { timeDomain: 'threadTicks' })
  const total = async () => {
    const { metrics } = await asked.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === 'TaskDuration').value * 1000
  }
  const before = await total()
  return async () => (await total()) - before
}

// Scrolls the page, or a part of it, by 120 px a frame, which is the most that a wheel does. Returns the longest time
// between two frames, and the processor time that the page's own thread took for one, from a trace: the latter does not
// depend on what else the machine does. In milliseconds.
export async function scrolls(page, part = 'html', frames = 200) {
  const traced = await page.context().newCDPSession(page)
  const events = []
  traced.on('Tracing.dataCollected', ({ value }) => events.push(...value))
  await traced.send('Tracing.start', {
    transferMode: 'ReportEvents',
    categories: 'disabled-by-default-devtools.timeline'
  })
  const longest = await page.evaluate(
    ([part, frames]) =>
      new Promise((resolve) => {
        const box = document.querySelector(part)
        let longest = 0
        let before = 0
        let drawn = 0
        box.scrollTop = 0
        const onFrame = (now) => {
          if (before) longest = Math.max(longest, now - before)
          before = now
          box.scrollTop += 120
          if (++drawn < frames) requestAnimationFrame(onFrame)
          else resolve(Math.round(longest))
        }
        requestAnimationFrame(onFrame)
      }),
    [part, frames]
  )
  const ended = new Promise((resolve) => traced.once('Tracing.tracingComplete', resolve))
  await traced.send('Tracing.end')
  await ended
  await traced.detach()
  const isMain = new Set(
    events
      .filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`)
  )
  const tasks = events
    .filter(({ name, pid, tid }) => name === 'RunTask' && isMain.has(`${pid} ${tid}`))
    .map(({ tdur = 0 }) => tdur / 1000)
  return { longest, longestTask: Math.max(0, ...tasks), perFrame: tasks.reduce((sum, ms) => sum + ms, 0) / frames }
}

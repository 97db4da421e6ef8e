<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Command;

use Hyperf\Command\Command;
use Redlock\Hyperf\Locks;
use Redlock\Verdict;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputOption;

final class StatusCommand extends Command
{
    protected ?string $name = 'redlock:status';

    protected string $description = 'Asks every node who holds a resource';

    public function __construct(private readonly Locks $locks)
    {
        parent::__construct();
    }

    public function configure(): void
    {
        parent::configure();
        $this->addArgument('resource', InputArgument::REQUIRED, 'the resource, as the attribute makes it');
        $this->addOption('cluster', null, InputOption::VALUE_REQUIRED, 'a cluster of config/autoload/redlock.php',
            'default');
    }

    public function handle(): int
    {
        $client = $this->locks->client($this->input->getOption('cluster'));
        $status = $client->status($this->input->getArgument('resource'));
        $rows = [];
        foreach ($status->nodes as $node => $answer) {
            $rows[] = [$node, $answer['words'], \substr($answer['token'], 0, 8), $answer['ttl_ms']];
        }
        $this->table(['node', 'answer', 'token', 'ms left'], $rows);
        $this->line("{$status->verdict->value}: $status->message");
        return $status->verdict === Verdict::Unknown ? self::FAILURE : self::SUCCESS;
    }
}
